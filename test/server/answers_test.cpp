// Cases 47 and 54: answers that do not come, and answers that nobody knows. safety.md's rule for both is the same:
// the old connection is killed first, then the same request is sent again or taken back.
#include <latchkey/latchkey.hpp>
#include <support/catch.hpp>
#include <support/errors.hpp>
#include <support/fault_proxy.hpp>
#include <support/run_coro.hpp>
#include <support/worlds.hpp>

#include <boost/asio/use_future.hpp>

#include <future>
#include <map>
#include <string>

using namespace latchkey;
using namespace latchkey::test;

namespace {

using way = fault_proxy::way;

// A client that reaches its server through a proxy and is connected.
struct cut_world {
  explicit cut_world(config settings = steady_config()) : own(proxy.uri(), heard_by(log, std::move(settings))) {
    own.get_lock("warm").lock();
    own.get_lock("warm").unlock();
  }
  std::int64_t count(owner who) {
    auto const all = admin.hash(name);
    auto const found = all.find(own.id() + ":" + to_string(who));
    return found == all.end() ? 0 : std::stoll(found->second);
  }
  // Of blocking calls.
  std::int64_t count() { return count(owner::this_thread()); }

  event_log log;
  redis_server server;
  fault_proxy proxy{server.where()};
  raw_redis admin = server.admin();
  client own;
  std::string name = "lock";
  distributed_lock lock = own.get_lock(name);
};

}  // namespace

TEST_CASE("case 47: an acquire whose answer was lost is granted exactly once", "[server][case-47]") {
  cut_world w;
  constexpr int most = 50;
  int count = 0;
  // A cut may also meet an answer to the greeting of a connection that is being made.
  for (; count < 2 || (count < most && w.own.snapshot().kills == 0); ++count) {
    w.proxy.cut_after(way::replies, 0);
    w.lock.lock();
    CHECK(w.proxy.cut_happened());
    CHECK(w.count() == count + 1);
  }
  CHECK(w.own.snapshot().kills >= 1);
  for (; count > 0; --count) w.lock.unlock();
  CHECK(w.admin.integer("EXISTS", w.name) == 0);
}

TEST_CASE("case 47: a release whose answer was lost releases exactly once", "[server][case-47]") {
  cut_world w;
  w.lock.lock();
  w.lock.lock();
  w.proxy.cut_after(way::replies, 0);
  w.lock.unlock();
  CHECK(w.count() == 1);
  w.proxy.cut_after(way::replies, 0);
  w.lock.unlock();
  CHECK(w.proxy.cut_happened());
  CHECK(w.admin.integer("EXISTS", w.name) == 0);
  lease held = w.lock.acquire();
  w.proxy.cut_after(way::replies, 0);
  CHECK(held.release() == release_result::released);
}

TEST_CASE("case 47: a request that never reached the server is sent again", "[server][case-47]") {
  cut_world w;
  w.proxy.cut_after(way::requests, 3);
  w.lock.lock();
  CHECK(w.proxy.cut_happened());
  CHECK(w.count() == 1);
  w.proxy.cut_after(way::requests, 3);
  w.lock.unlock();
  CHECK(w.admin.integer("EXISTS", w.name) == 0);
}

TEST_CASE("case 47: an acquire of a coroutine whose answer was lost is granted exactly once", "[server][case-47]") {
  cut_world w;
  auto const me = owner::make();
  for (int i = 1; i <= 5; ++i) {
    w.proxy.cut_after(way::replies, 0);
    CHECK(error_in(w.lock.async_lock(me, asio::use_future)) == error_code{});
    CHECK(w.count(me) == i);
  }
  for (int i = 4; i >= 0; --i) {
    w.proxy.cut_after(way::replies, 0);
    CHECK(error_in(w.lock.async_unlock(me, asio::use_future)) == error_code{});
    CHECK(w.count(me) == i);
  }
}

TEST_CASE("case 47: no answer until the end of the wait is timeout, and the grant is taken back", "[server][case-47]") {
  auto settings = steady_config();
  settings.timeout = 200ms;
  settings.connect_timeout = 300ms;
  cut_world w(settings);
  w.proxy.swallow_replies(true);
  CHECK(error_of([&] { return w.lock.try_lock(500ms * slowness); }) == errc::timeout);
  CHECK(may_still_be_held(errc::timeout));
  w.proxy.swallow_replies(false);
  CHECK(wait_until([&] { return w.admin.integer("EXISTS", w.name) == 0 && w.own.snapshot().in_doubt == 0; }));
  CHECK(w.lock.try_lock(patience));
  CHECK(w.count() == 1);
}

TEST_CASE("case 47: a release without answer until its lease is over is unknown", "[server][case-47]") {
  auto settings = steady_config();
  settings.timeout = 200ms;
  settings.connect_timeout = 300ms;
  cut_world w(settings);
  lease held = w.lock.acquire({.lease = 1s});
  w.proxy.swallow_replies(true);
  auto result = held.async_release(asio::use_future);
  REQUIRE(wait_until([&] { return w.admin.integer("EXISTS", w.name) == 0; }));
  REQUIRE(w.log.wait_for(event_type::disconnected));
  // The lease is over for the holder too before anything is answered.
  auto end = clock::now() + 1s;
  REQUIRE(wait_until([&] { return clock::now() > end; }));
  w.proxy.swallow_replies(false);
  CHECK(value_of(std::move(result)) == release_result::unknown);
}

TEST_CASE("case 47: copies that wait in the network are killed before they can run", "[server][case-47]") {
  auto settings = steady_config();
  settings.timeout = 200ms;
  settings.connect_timeout = 300ms;
  cut_world w(settings);
  // The acquire hangs between client and server. The client gives the connection up, but the bytes are on their way.
  w.proxy.hold(way::requests, true);
  auto first = w.lock.async_acquire({.wait = 400ms * slowness}, asio::use_future);
  CHECK(error_in(std::move(first)) == errc::timeout);
  REQUIRE(w.log.wait_for(event_type::disconnected));
  w.proxy.hold(way::requests, false);
  CHECK(wait_until([&] { return w.own.snapshot().in_doubt == 0 && w.admin.integer("EXISTS", w.name) == 0; }));
  lease second = w.lock.acquire({.wait = patience});
  CHECK(second.held());
  CHECK(w.admin.hash(w.name).size() == 1);
  CHECK(w.count(second.owner()) == 1);
}

TEST_CASE("case 47: a hand-off whose answer was lost passes the lock on exactly once", "[server][case-47]") {
  cut_world w;
  for (int i = 0; i < 5; ++i) {
    lease held = w.lock.acquire();
    auto next = w.lock.async_acquire(asio::use_future);
    REQUIRE(w.log.wait_for(event_type::waiting, w.name, i + 1));
    REQUIRE(wait_until([&] { return w.admin.listeners(w.name) == 1; }));
    w.proxy.cut_after(way::replies, 0);
    CHECK(held.release() == release_result::released);
    lease got = value_of(std::move(next));
    CHECK(got.held());
    CHECK(w.admin.hash(w.name).size() == 1);
    CHECK(w.count(got.owner()) == 1);
    CHECK(got.release() == release_result::released);
    CHECK(w.admin.integer("EXISTS", w.name) == 0);
  }
}

TEST_CASE("case 47: a force_unlock whose answer was lost is never sent again", "[server][case-47]") {
  cut_world w;
  client other(w.server.uri(), steady_config());
  other.get_lock(w.name).lock();
  auto const before = w.admin.script_calls();
  w.proxy.cut_after(way::replies, 0);
  auto const error = error_of([&] { return w.lock.force_unlock(); });
  CHECK(w.proxy.cut_happened());
  CHECK(error == errc::connection_lost);
  // With its script unknown the server was asked by EVALSHA and had not answered the EVAL, or had not got it.
  CHECK(w.admin.script_calls() - before <= 1);
  other.get_lock(w.name).force_unlock();
}

TEST_CASE("case 47: a renewal whose answer was lost is asked anew and the hold goes on", "[server][case-47]") {
  auto settings = steady_config();
  settings.lock_watchdog_timeout = 3s * slowness;
  cut_world w(settings);
  lease held = w.lock.acquire();
  w.proxy.cut_after(way::replies, 0);
  REQUIRE(wait_until([&] { return w.proxy.cut_happened(); }));
  auto const before = w.own.snapshot().renewals;
  CHECK(wait_until([&] { return w.own.snapshot().renewals > before; }));
  CHECK(held.held());
  CHECK(held.release() == release_result::released);
  CHECK(w.log.count_after(w.own, event_type::lost) == 0);
}

TEST_CASE("case 54: an error that nobody knows is server_error with its words, and the next call works",
          "[server][case-54]") {
  cut_world w;
  for (auto const* text :
       {"ERR syntax error", "ERR value is not an integer or out of range", "WEIRD never heard of", "lowercase words"}) {
    INFO("text: " << text);
    w.proxy.inject("EVALSHA", "-" + std::string(text) + "\r\n", 1);
    auto const error = thrown_by([&] { return w.lock.try_lock(); });
    CHECK(error.code() == errc::server_error);
    CHECK_FALSE(error.transient());
    CHECK(error.server_text() == text);
    CHECK(wait_until([&] { return w.admin.integer("EXISTS", w.name) == 0; }));
    CHECK(w.lock.try_lock());
    w.lock.unlock();
  }
}
