// Cases 75 to 78: answers that break the protocol, or keep it and make no sense.
#include <latchkey/latchkey.hpp>
#include <support/catch.hpp>
#include <support/errors.hpp>
#include <support/fault_proxy.hpp>
#include <support/run_coro.hpp>
#include <support/worlds.hpp>

#include <boost/asio/use_future.hpp>

#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <future>
#include <string>
#include <thread>
#include <vector>

using namespace latchkey;
using namespace latchkey::test;

namespace {

struct lying_world {
  lying_world() {
    own.get_lock("warm").lock();
    own.get_lock("warm").unlock();
  }
  static config settings(event_log const& log) {
    auto made = steady_config(log);
    made.timeout = 1s * slowness;
    return made;
  }
  // Blocking calls go by a connection of their own, others by the shared one, whose end is an event. It may come after
  // the answer of a call that went on with the next connection.
  bool told(errc value) const {
    return wait_until([&] {
      auto const all = log.all();
      return std::any_of(all.begin(), all.end(),
                         [&](auto const& e) { return e.type == event_type::disconnected && e.error == value; });
    });
  }
  bool reconnected(std::uint64_t times) {
    return wait_until([&] { return own.snapshot().reconnects >= times; });
  }
  event_log log;
  redis_server server;
  fault_proxy proxy{server.where()};
  raw_redis admin = server.admin();
  client own{proxy.uri(), settings(log)};
  std::string name = "lock";
  distributed_lock lock = own.get_lock(name);
};

long peak_kilobytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

}  // namespace

TEST_CASE("case 75: malformed answers end the connection, and the call goes on with a new one", "[server][case-75]") {
  lying_world w;
  std::vector<std::string> const malformed{
      "?what\r\n",
      "\r\n",
      "HTTP/1.1 200 OK\r\n",
      ":12x\r\n",
      ":99999999999999999999\r\n",
      "$-2\r\n",
      "$abc\r\n",
      "*-2\r\n",
      "*1\r\n$3\r\nabcdef",
      "*1\r\n!\r\n",
      "%1\r\n+a\r\n+b\r\n",
      ">1\r\n+x\r\n",
      ",1.5\r\n",
      std::string("\0\0\0\0", 4),
  };
  std::uint64_t reconnects = 0;
  for (auto const& answer : malformed) {
    INFO("answer: " << answer);
    w.proxy.inject("EVALSHA", answer, 1);
    CHECK(w.lock.try_lock(patience));
    CHECK(w.admin.hash(w.name).size() == 1);
    CHECK(w.lock.hold_count() == 1);
    w.lock.unlock();
    CHECK(w.reconnected(++reconnects));
    w.proxy.inject("EVALSHA", answer, 1);
    lease held = value_of(w.lock.async_acquire(asio::use_future));
    CHECK(held.held());
    CHECK(w.admin.hash(w.name).size() == 1);
    CHECK(held.release() == release_result::released);
    CHECK(w.reconnected(++reconnects));
    reconnects = w.own.snapshot().reconnects;
  }
  CHECK(w.told(errc::protocol_error));
}

TEST_CASE("case 75: deep nesting is refused", "[server][case-75]") {
  lying_world w;
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += "*1\r\n";
  w.proxy.inject("EVALSHA", deep, 1);
  lease held = value_of(w.lock.async_acquire(asio::use_future));
  CHECK(held.held());
  CHECK(w.told(errc::protocol_error));
}

TEST_CASE("case 75: half an answer is waited for no longer than the time-out", "[server][case-75]") {
  lying_world w;
  w.proxy.inject("EVALSHA", "*1\r\n$10\r\nabc", 1);
  CHECK(w.lock.try_lock(patience));
  w.lock.unlock();
  CHECK(w.reconnected(1));
  w.proxy.inject("EVALSHA", "*1\r\n$10\r\nabc", 1);
  CHECK(value_of(w.lock.async_acquire(asio::use_future)).held());
  CHECK(w.told(errc::timeout));
}

TEST_CASE("case 75: a server that answers nothing but nonsense fails a bounded call in time", "[server][case-75]") {
  lying_world w;
  w.proxy.inject("EVALSHA", "?what\r\n", 1'000'000);
  auto const error = error_of([&] { return w.lock.try_lock(); });
  CHECK((error == errc::protocol_error || error == errc::connection_lost || error == errc::timeout));
  CHECK(error_of([&] { return w.lock.try_lock(300ms); }) != error_code{});
  w.proxy.inject("EVALSHA", "", 0);
  CHECK(wait_until([&] { return w.own.snapshot().in_doubt == 0; }));
  CHECK(w.admin.integer("EXISTS", w.name) == 0);
}

TEST_CASE("case 76: huge announced lengths are refused without memory for them", "[server][case-76]") {
  lying_world w;
  auto const before = peak_kilobytes();
  for (auto const* answer : {"$536870912\r\n", "*1\r\n$536870912\r\n", "*10000000\r\n", "*1\r\n*2147483647\r\n",
                             "$9223372036854775807\r\n", "*9223372036854775807\r\n"}) {
    INFO("answer: " << answer);
    auto const reconnects = w.own.snapshot().reconnects;
    w.proxy.inject("EVALSHA", std::string(answer), 1);
    CHECK(w.lock.try_lock(patience));
    CHECK(w.reconnected(reconnects + 1));
    w.lock.unlock();
  }
  CHECK(peak_kilobytes() - before < 200'000);
}

TEST_CASE("case 76: an answer that really is large is cut off", "[server][case-76]") {
  lying_world w;
  auto const large = "$3000000\r\n" + std::string(3'000'000, 'x') + "\r\n";
  w.proxy.inject("EVALSHA", large, 1);
  CHECK(w.lock.try_lock(patience));
  w.lock.unlock();
  CHECK(w.reconnected(1));
  w.proxy.inject("EVALSHA", large, 1);
  CHECK(value_of(w.lock.async_acquire(asio::use_future)).held());
  CHECK(w.told(errc::protocol_error));
}

TEST_CASE("case 77: an answer of the right form and the wrong meaning is never taken for a grant",
          "[server][case-77]") {
  lying_world w;
  std::vector<std::string> const strange{
      "+OK\r\n",
      "+granted\r\n",
      "$-1\r\n",
      "$2\r\nOK\r\n",
      ":0\r\n",
      ":1\r\n",
      ":-2\r\n",
      ":9223372036854775807\r\n",
      "*0\r\n",
      "*-1\r\n",
      "*1\r\n:-2\r\n",
      "*1\r\n:-1000\r\n",
      "*1\r\n:-9223372036854775808\r\n",
      "*1\r\n$-1\r\n",
      "*1\r\n+OK\r\n",
      "*1\r\n*0\r\n",
      "*1\r\n*2\r\n:-5\r\n:-3\r\n",
      "*2\r\n:-3\r\n:-3\r\n",
  };
  bool const ran = GENERATE(false, true);
  for (auto const& answer : strange) {
    // "The key went away meanwhile" makes sense, and a server that says so has granted nothing.
    if (ran && answer == "*1\r\n:-2\r\n") continue;
    INFO("answer: " << answer << " of a server that has " << (ran ? "granted it" : "never heard of it"));
    if (ran)
      w.proxy.replace("EVALSHA", answer, 1);
    else
      w.proxy.inject("EVALSHA", answer, 1);
    bool held = false;
    static_cast<void>(error_of([&] { held = w.lock.try_lock(); }));
    if (held) {
      CHECK(w.admin.hash(w.name).count(w.own.id() + ":" + to_string(owner::this_thread())) == 1);
      w.lock.unlock();
    }
    CHECK(wait_until([&] { return w.own.snapshot().in_doubt == 0 && w.admin.integer("EXISTS", w.name) == 0; }));
    CHECK(w.own.snapshot().held == 0);
  }
}

TEST_CASE("case 77: strange answers to questions are errors, not answers", "[server][case-77]") {
  lying_world w;
  w.lock.lock();
  for (auto const* answer : {"+OK\r\n", "*0\r\n", "$5\r\nhello\r\n"}) {
    INFO("answer: " << answer);
    w.proxy.inject("EXISTS", answer, 1);
    bool locked = false;
    auto const error = error_of([&] { locked = w.lock.is_locked(); });
    CHECK((error != error_code{} || locked));
  }
  CHECK(w.lock.is_locked());
  w.lock.unlock();
}

TEST_CASE("case 77: a strange answer to a release leaves the truth to be found out", "[server][case-77]") {
  lying_world w;
  for (auto const* answer : {"+OK\r\n", "*1\r\n:77\r\n", "*0\r\n", "*1\r\n:-3\r\n"}) {
    INFO("answer: " << answer);
    lease held = w.lock.acquire();
    w.proxy.inject("EVALSHA", answer, 1);
    auto found = release_result::released;
    auto const error = error_of([&] { found = held.release(); });
    CHECK((error == errc::server_error || (error == error_code{} && found == release_result::released)));
    // Long before the lease ends it.
    CHECK(wait_until([&] { return w.admin.integer("EXISTS", w.name) == 0; }));
    w.admin.ok("DEL", w.name);
  }
}

TEST_CASE("case 78: answers to nothing are matched to no request", "[server][case-78]") {
  lying_world w;
  for (auto const* stray : {"+OK\r\n", "*1\r\n:-3\r\n", ":1\r\n", "$-1\r\n", ">2\r\n+invalidate\r\n*0\r\n",
                            "*3\r\n$7\r\nmessage\r\n$1\r\nx\r\n$1\r\n0\r\n"}) {
    INFO("stray: " << stray);
    w.own.connect();  // what comes while a line still greets would be an answer to that
    w.admin.ok("HSET", w.name, "somebody:1", 1);
    w.admin.ok("PEXPIRE", w.name, 60'000);
    w.proxy.push(stray, fault_proxy::lines::commands);
    bool held = false;
    static_cast<void>(error_of([&] { held = w.lock.try_lock(); }));
    CHECK_FALSE(held);
    CHECK(w.own.snapshot().held == 0);
    w.admin.ok("DEL", w.name);
    CHECK(wait_until([&] { return error_of([&] { return w.lock.is_locked(); }) == error_code{}; }));
    CHECK_FALSE(w.lock.is_locked());
    CHECK(w.lock.try_lock(patience));
    CHECK(w.lock.hold_count() == 1);
    w.lock.unlock();
  }
}

TEST_CASE("case 78: an answer that was there before the request is not taken for its answer", "[server][case-78]") {
  redis_server server;
  fault_proxy proxy(server.where());
  auto admin = server.admin();
  asio::io_context io;
  client own(io, proxy.uri(), steady_config());
  auto const lock = own.get_lock("lock");
  // Both connections for commands are up; from now on nobody runs the context, so that the stray bytes lie unread.
  std::atomic<bool> done{false};
  std::thread blocking([&] {
    for (int i = 0; i < 5; ++i) static_cast<void>(error_of([&] { return lock.is_locked(); }));
    for (int i = 0; i < 5; ++i) static_cast<void>(error_of([&] { return lock.force_unlock(); }));
    done = true;
  });
  CHECK(run_until(io, [&] { return done.load(); }));
  blocking.join();
  admin.ok("HSET", "lock", "somebody:1", 1);
  proxy.push("*1\r\n:-3\r\n", fault_proxy::lines::commands);
  bool held = false;
  std::thread asking([&] { static_cast<void>(error_of([&] { held = lock.try_lock(500ms); })); });
  asking.join();
  CHECK_FALSE(held);
}

TEST_CASE("case 78: unknown words on the connection for messages do no harm", "[server][case-78]") {
  lying_world w;
  client other(w.server.uri(), steady_config());
  auto const theirs = other.get_lock(w.name);
  for (auto const* stray : {"*3\r\n$7\r\nmessage\r\n$5\r\nother\r\n$1\r\n0\r\n", "*2\r\n$4\r\nwhat\r\n$1\r\nx\r\n",
                            "*0\r\n", "+PONG\r\n", ":5\r\n", "*3\r\n$10\r\ninvalidate\r\n$-1\r\n$-1\r\n"}) {
    INFO("stray: " << stray);
    theirs.lock();
    auto waiter = std::async(std::launch::async, [&] {
      bool const held = w.lock.try_lock(patience);
      if (held) w.lock.unlock();
      return held;
    });
    REQUIRE(wait_until([&] { return w.own.snapshot().waiting == 1 && w.admin.listeners(w.name) == 1; }));
    w.proxy.push(stray, fault_proxy::lines::messages);
    theirs.unlock();
    CHECK(value_of(std::move(waiter)));
  }
}
