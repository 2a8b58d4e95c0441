// Cases 67 to 74: the network between client and server.
#include <latchkey/latchkey.hpp>
#include <support/catch.hpp>
#include <support/child_process.hpp>
#include <support/errors.hpp>
#include <support/fault_proxy.hpp>
#include <support/host_names.hpp>
#include <support/run_coro.hpp>
#include <support/worlds.hpp>

#include <boost/asio/use_future.hpp>

#include <algorithm>
#include <future>
#include <string>
#include <vector>

using namespace latchkey;
using namespace latchkey::test;

namespace {

using way = fault_proxy::way;
using lines = fault_proxy::lines;

struct proxy_world {
  explicit proxy_world(config settings, bool tcp = false)
      : proxy(server.where(), tcp), own(proxy.uri(), heard_by(log, std::move(settings))) {
    static_cast<void>(own.get_lock("warm").is_locked());
  }
  event_log log;
  redis_server server;
  fault_proxy proxy;
  raw_redis admin = server.admin();
  client own;
  std::string name = "lock";
  distributed_lock lock = own.get_lock(name);
};

}  // namespace

TEST_CASE("case 67: a connection through which nothing comes any more is found by its ping", "[server][case-67]") {
  auto settings = steady_config();
  settings.ping_interval = 100ms;
  settings.timeout = 500ms;
  proxy_world w(settings);
  REQUIRE(wait_until([&] { return w.proxy.requests()["PING"] >= 2; }));
  w.proxy.silent(true);
  stopwatch since;
  CHECK(w.log.wait_for(event_type::disconnected));
  CHECK(since.passed() < 10 * (settings.ping_interval + settings.timeout));
  w.proxy.silent(false);
  CHECK(w.lock.try_lock(patience));
}

TEST_CASE("case 67: a dead subscription connection is found too, and its waiters try", "[server][case-67]") {
  auto settings = steady_config();
  settings.ping_interval = 100ms;
  settings.timeout = 500ms;
  proxy_world w(settings);
  client other(w.server.uri(), steady_config());
  auto const theirs = other.get_lock(w.name);
  theirs.lock();
  auto waiter = std::async(std::launch::async, [&] { return w.lock.try_lock(patience * 2); });
  REQUIRE(wait_until([&] { return w.admin.listeners(w.name) == 1; }));
  w.proxy.hold(way::requests, true, lines::messages);
  w.proxy.hold(way::replies, true, lines::messages);
  auto const before = w.proxy.accepted();
  theirs.unlock();
  CHECK(wait_until([&] { return w.proxy.accepted() > before; }));
  w.proxy.hold(way::requests, false, lines::messages);
  w.proxy.hold(way::replies, false, lines::messages);
  CHECK(value_of(std::move(waiter)));
}

TEST_CASE("case 67: TCP connections have keepalive and a limit for unacknowledged bytes", "[server][case-67]") {
  private_world w(steady_config(), {.tcp = true});
  w.lock.lock();
  auto const all = sockets_to(w.server.where().port);
  REQUIRE(all.size() >= 1);
  for (auto const& one : all) {
    CHECK(one.keepalive);
    CHECK(one.no_delay);
    CHECK(one.user_timeout > 0ms);
    CHECK(one.user_timeout <= steady_config().timeout + steady_config().ping_interval);
  }
  w.lock.unlock();
}

TEST_CASE("case 68: a reset after every byte of requests and replies loses and doubles nothing", "[server][case-68]") {
  auto const which = GENERATE(way::requests, way::replies);
  proxy_world w(steady_config());
  // The scripts are known and both lanes are up.
  for (int i = 0; i < 3; ++i) CHECK(w.lock.acquire().release() == release_result::released);
  auto const before = w.proxy.passed(which);
  CHECK(w.lock.acquire().release() == release_result::released);
  auto const whole = w.proxy.passed(which) - before;
  REQUIRE(whole > 10);
  for (std::size_t k = 0; k < whole; k += static_cast<std::size_t>(slowness)) {
    INFO("cut after byte " << k << " of " << whole);
    w.proxy.cut_after(which, k);
    lease held = w.lock.acquire({.wait = patience});
    REQUIRE(held.held());
    REQUIRE(w.admin.hash(w.name).size() == 1);
    REQUIRE(w.admin.hash(w.name)[w.own.id() + ":" + to_string(held.owner())] == "1");
    REQUIRE(held.release() == release_result::released);
    REQUIRE(w.admin.integer("EXISTS", w.name) == 0);
    REQUIRE(w.proxy.cut_happened());
  }
  CHECK(w.own.snapshot().lost == 0);
  CHECK(w.own.snapshot().in_doubt == 0);
}

TEST_CASE("case 68: bytes that come one by one are understood", "[server][case-68]") {
  proxy_world w(steady_config());
  w.proxy.slice(true);
  for (int i = 0; i < 5; ++i) {
    lease held = w.lock.acquire();
    CHECK(held.held());
    CHECK(held.release() == release_result::released);
  }
}

TEST_CASE("case 68: a connection closed on one side only is given up", "[server][case-68]") {
  proxy_world w(steady_config());
  w.lock.lock();
  for (int i = 0; i < 3; ++i) {
    w.proxy.half_close();
    w.lock.lock();
  }
  CHECK(w.lock.hold_count() == 4);
  CHECK(w.lock.force_unlock());
}

TEST_CASE("case 69: an answer that comes too late meets nobody", "[server][case-69]") {
  auto settings = steady_config();
  settings.timeout = 200ms;
  settings.connect_timeout = 300ms;
  proxy_world w(settings);
  auto const busy = w.own.get_lock("busy");
  w.admin.ok("HSET", "busy", "somebody:1", 1);
  w.proxy.hold(way::replies, true);
  // The answer would be "true".
  CHECK(error_of([&] { return busy.is_locked(); }) != error_code{});
  w.proxy.hold(way::replies, false);
  for (int i = 0; i < 20; ++i) {
    CHECK_FALSE(w.lock.is_locked());
    CHECK(busy.is_locked());
  }
}

TEST_CASE("case 69: a server that is slower than the time-out ends the call in time", "[server][case-69]") {
  auto settings = steady_config();
  settings.timeout = 200ms;
  settings.retry_attempts = 1;
  private_world w(settings);
  static_cast<void>(w.lock.is_locked());
  w.server.pause();
  stopwatch since;
  CHECK(error_of([&] { return w.lock.try_lock(400ms); }) == errc::timeout);
  CHECK(since.passed() >= 200ms);
  CHECK(since.passed() < 5s * slowness);
  w.server.resume();
  CHECK(w.lock.try_lock(patience));
  CHECK(w.lock.hold_count() == 1);
}

TEST_CASE("case 70: while the server is away comers pause between attempts, and need few connections after",
          "[server][case-70]") {
  auto settings = steady_config();
  settings.retry_delay = 200ms;
  proxy_world w(settings);
  lease held = w.lock.acquire();
  w.proxy.refuse(true);
  auto const before = w.proxy.accepted();
  stopwatch since;
  w.proxy.cut();
  auto waiter = w.own.get_lock("other").async_acquire(asio::use_future);
  REQUIRE(wait_until([&] { return w.proxy.accepted() >= before + 8; }));
  // Pauses are random and grow up to 200 ms; without them this would take a few milliseconds.
  CHECK(since.passed() > 150ms);
  w.proxy.refuse(false);
  CHECK(value_of(std::move(waiter)).held());
  CHECK(held.held());
  CHECK(wait_until([&] { return w.proxy.open() <= 3; }));
  CHECK(held.release() == release_result::released);
}

TEST_CASE("case 70: after a restart of the server a hold lives on with its data", "[server][case-70]") {
  private_world w(steady_config(), {.append_only = true});
  lease held = w.lock.acquire();
  w.server.restart();
  auto const again = w.lock.acquire({.wait = patience, .owner = held.owner()});
  CHECK(again.held());
  CHECK(held.held());
  CHECK(held.release() == release_result::still_held);
}

TEST_CASE("case 70: after a restart without data a hold is lost and the lock is free", "[server][case-70]") {
  auto settings = steady_config();
  settings.lock_watchdog_timeout = 3s * slowness;
  private_world w(settings);
  lease held = w.lock.acquire();
  w.server.restart();
  lease next = w.lock.acquire({.wait = patience});
  CHECK(next.held());
  // The grant to another owner of this client proves that the first hold is gone.
  CHECK_FALSE(held.held());
}

TEST_CASE("case 71: all addresses of a name are tried", "[server][case-71]") {
  redis_server server({.tcp = true});
  host_names names;
  names.set("several.test", {"127.0.0.9", "127.0.0.8", "127.0.0.1"});
  client own("redis://several.test:" + std::to_string(server.where().port), steady_config());
  CHECK(own.get_lock("lock").try_lock());
  client local("redis://localhost:" + std::to_string(server.where().port), steady_config());
  CHECK(local.get_lock("other").try_lock());
}

TEST_CASE("case 71: a name is looked up anew at every connect", "[server][case-71]") {
  redis_server first({.tcp = true});
  auto const port = std::to_string(first.where().port);
  redis_server second({.arguments = {"--bind", "127.0.0.2", "--port", port}});
  host_names names;
  names.set("moving.test", {"127.0.0.1"});
  client own("redis://moving.test:" + port, steady_config());
  CHECK(own.get_lock("before").try_lock());
  CHECK(first.admin().integer("EXISTS", "before") == 1);
  names.set("moving.test", {"127.0.0.2"});
  first.stop();
  CHECK(own.get_lock("after").try_lock(patience));
  CHECK(second.admin().integer("EXISTS", "after") == 1);
}

TEST_CASE("case 73: a waiter whose subscription is lost at the instant of the release tries by itself",
          "[server][case-73]") {
  proxy_world w(steady_config());
  client other(w.server.uri(), steady_config());
  auto const theirs = other.get_lock(w.name);
  for (int i = 0; i < 3; ++i) {
    theirs.lock();
    auto waiter = std::async(std::launch::async, [&] { return w.lock.try_lock(patience); });
    REQUIRE(wait_until([&] { return w.own.snapshot().waiting == 1 && w.admin.listeners(w.name) == 1; }));
    // The message is on its way and gets lost with its connection.
    w.proxy.hold(way::replies, true, lines::messages);
    theirs.unlock();
    CHECK(w.proxy.cut(lines::messages) == 1);
    w.proxy.hold(way::replies, false, lines::messages);
    CHECK(value_of(std::move(waiter)));
    CHECK(w.lock.force_unlock());
  }
}

TEST_CASE("case 73: a waiter whose connection for commands is lost tries again after the reconnect",
          "[server][case-73]") {
  proxy_world w(steady_config());
  client other(w.server.uri(), steady_config());
  auto const theirs = other.get_lock(w.name);
  theirs.lock();
  auto waiter = std::async(std::launch::async, [&] { return w.lock.try_lock(patience); });
  REQUIRE(wait_until([&] { return w.own.snapshot().waiting == 1 && w.admin.listeners(w.name) == 1; }));
  w.proxy.refuse(true);
  w.proxy.cut();
  theirs.unlock();
  w.proxy.refuse(false);
  CHECK(value_of(std::move(waiter)));
}

TEST_CASE("case 74: a subscription that the server ends for its full buffer is set up anew, and its waiters try",
          "[server][case-74]") {
  proxy_world w(steady_config());
  client other(w.server.uri(), steady_config());
  auto const theirs = other.get_lock(w.name);
  theirs.lock();
  auto waiter = std::async(std::launch::async, [&] { return w.lock.try_lock(patience); });
  REQUIRE(wait_until([&] { return w.own.snapshot().waiting == 1 && w.admin.listeners(w.name) == 1; }));
  w.admin.ok("CONFIG", "SET", "client-output-buffer-limit", "pubsub 1kb 1kb 1");
  auto const before = w.proxy.accepted();
  w.admin.ok("PUBLISH", channel_of(w.name), std::string(500'000, 'x'));
  CHECK(wait_until([&] { return w.proxy.accepted() > before; }));
  theirs.unlock();
  CHECK(value_of(std::move(waiter)));
}
