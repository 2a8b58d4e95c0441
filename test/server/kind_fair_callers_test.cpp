// The fair lock for all kinds of callers, and what it costs in commands.
#include <latchkey/latchkey.hpp>
#include <support/catch.hpp>
#include <support/errors.hpp>
#include <support/fault_proxy.hpp>
#include <support/redis_server.hpp>
#include <support/run_coro.hpp>
#include <support/wall_clock.hpp>
#include <support/worlds.hpp>

#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>

#include <algorithm>
#include <future>
#include <map>
#include <mutex>
#include <string>
#include <thread>

// GCC 12 inlines how Asio allocates the frame of a coroutine, but not how it frees it, and warns of the difference.
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"

using namespace latchkey;
using namespace latchkey::test;

TEST_CASE("fair lock: blocking callers wait, are granted, and can use the standard guards", "[server][fair]") {
  fair_world w;
  client other(common_server().uri(), steady_config());
  auto const theirs = other.get_fair_lock(w.name);
  w.fair.lock();
  auto waiter = std::async(std::launch::async, [&] {
    theirs.lock();
    bool const held = theirs.is_held_by_current_thread();
    theirs.unlock();
    return held;
  });
  auto timed = std::async(std::launch::async, [&] {
    bool const held = theirs.try_lock_for(patience);
    if (held) theirs.unlock();
    return held;
  });
  REQUIRE(wait_until([&] { return w.line().size() == 2; }));
  w.fair.unlock();
  CHECK(value_of(std::move(waiter)));
  CHECK(value_of(std::move(timed)));
  { std::scoped_lock const guard(w.fair); }
  auto const mutex = w.fair.as_mutex();
  { std::unique_lock const guard(mutex, std::try_to_lock); }
  CHECK(w.nothing_left());
}

TEST_CASE("fair lock: a blocking acquire gives up when a stop is asked for, and leaves the queue", "[server][fair]") {
  fair_world w;
  client other(common_server().uri(), steady_config());
  lease held = other.get_fair_lock(w.name).acquire();
  std::stop_source stop;
  auto waiter = std::async(std::launch::async, [&] { return !w.fair.acquire({}, stop.get_token()); });
  REQUIRE(wait_until([&] { return w.line().size() == 1; }));
  stop.request_stop();
  CHECK(value_of(std::move(waiter)));
  CHECK(wait_until([&] { return w.line().empty(); }));
}

TEST_CASE("fair lock: coroutines wait, hold leases, and run bodies under it", "[server][fair]") {
  fair_world w;
  asio::io_context io;
  client own(io, common_server().uri(), steady_config());
  auto const lock = own.get_fair_lock(w.name);
  int inside = 0, most = 0, done = 0;
  constexpr int coroutines = 20;
  auto const body = [&]() -> asio::awaitable<void> {
    auto const me = owner::make();
    co_await lock.async_lock(me, asio::use_awaitable);
    most = std::max(most, ++inside);
    --inside;
    co_await lock.async_unlock(me, asio::use_awaitable);
    co_await with_lock(
        lock,
        [&](lease& held) -> asio::awaitable<void> {
          CHECK(held.held());
          most = std::max(most, ++inside);
          --inside;
          co_return;
        },
        asio::use_awaitable);
    lease held = co_await lock.async_acquire(asio::use_awaitable);
    check_equal(co_await held.async_release(asio::use_awaitable), release_result::released);
    ++done;
  };
  for (int i = 0; i < coroutines; ++i)
    asio::co_spawn(io, body, [](std::exception_ptr failure) {
      if (failure) std::rethrow_exception(failure);
    });
  CHECK(run_until(io, [&] { return done == coroutines; }));
  CHECK(most == 1);
  CHECK(w.nothing_left());
}

TEST_CASE("fair lock: connections that end while callers wait cost nobody the lock", "[server][fair]") {
  fair_world w;
  private_world p;
  auto const fair = p.own.get_fair_lock(p.name);
  lease held = fair.acquire();
  std::vector<std::future<lease>> waiting;
  for (int i = 0; i < 5; ++i) waiting.push_back(fair.async_acquire(asio::use_future));
  for (int i = 0; i < 10; ++i) {
    p.admin.kill_clients();
    std::this_thread::sleep_for(5ms);
  }
  REQUIRE(wait_until([&] { return p.admin.integer("LLEN", "redisson_lock_queue:{lock}") == 5; }));
  held = {};
  for (int left = 5; left > 0; --left) {
    std::size_t next = waiting.size();
    REQUIRE(wait_until([&] {
      for (next = 0; next < waiting.size(); ++next)
        if (waiting[next].valid() && waiting[next].wait_for(0s) == std::future_status::ready) return true;
      return false;
    }));
    CHECK(waiting[next].get().held());
  }
  CHECK(wait_until([&] { return p.admin.integer("DBSIZE") == 0; }));
}

TEST_CASE("fair lock: an acquire, a release and a leave whose answers are lost are repeated without harm",
          "[server][fair]") {
  fair_world w;
  fault_proxy proxy(common_server().where());
  client far(proxy.uri(), steady_config());
  client near(common_server().uri(), steady_config());
  auto const lock = far.get_fair_lock(w.name);
  static_cast<void>(lock.is_locked());
  auto const lose_answer = [&] { proxy.cut_after(fault_proxy::way::replies, 0); };

  lose_answer();
  lease held = lock.acquire();
  CHECK(proxy.cut_happened());
  CHECK(held.held());
  CHECK(w.admin.hash(w.name) == std::map<std::string, std::string>{{far.id() + ":" + to_string(held.owner()), "1"}});
  lose_answer();
  CHECK(held.release() == release_result::released);
  CHECK(w.nothing_left());

  // In the queue once, whatever was lost on the way.
  lease theirs = near.get_fair_lock(w.name).acquire();
  auto const me = owner::make(), other = owner::make();
  lose_answer();
  auto waiting = lock.async_acquire({.owner = me}, asio::use_future);
  REQUIRE(w.listening(far.id() + ":" + to_string(me)));
  CHECK(w.line().size() == 1);
  auto behind = near.get_fair_lock(w.name).async_acquire({.owner = other}, asio::use_future);
  REQUIRE(w.listening(near.id() + ":" + to_string(other)));
  auto const score = w.score(near.id() + ":" + to_string(other));
  // It leaves twice, and those behind get its time back once.
  lose_answer();
  far.close();
  CHECK(error_in(std::move(waiting)) == errc::closed);
  CHECK(wait_until([&] { return w.line().size() == 1; }));
  CHECK(w.score(near.id() + ":" + to_string(other)) == score - 300'000);
  theirs.release();
  value_of(std::move(behind)).release();
  CHECK(w.nothing_left());
}

// A sanitizer has a clock_gettime of its own.
#ifndef LATCHKEY_TEST_SANITIZED
TEST_CASE("fair lock: case 88: a step of the client's wall clock changes nothing in the queue",
          "[server][fair][case-88]") {
  fair_world w;
  client other(common_server().uri(), steady_config());
  auto const theirs = other.get_fair_lock(w.name);
  lease held = w.fair.acquire({.lease = 20s});
  auto const server_now = w.now();
  shift_wall_clock(std::chrono::seconds(100'000));
  auto const a = owner::make(), b = owner::make();
  auto first = w.fair.async_acquire({.owner = a}, asio::use_future);
  REQUIRE(w.listening(a));
  CHECK(w.score(a) < server_now + 400'000);
  shift_wall_clock(std::chrono::seconds(-100'000));
  auto second = theirs.async_acquire({.owner = b}, asio::use_future);
  REQUIRE(w.listening(other.id() + ":" + to_string(b)));
  CHECK(w.line().front() == w.field(a));
  held.release();
  held = value_of(std::move(first));
  shift_wall_clock(0s);
  held.release();
  value_of(std::move(second)).release();
}
#endif

// --- cost ---

namespace {

using commands = std::map<std::string, int>;

// Nothing is sent but what a call needs: no ping, no renewal.
config quiet() {
  auto settings = unpinged_config();
  settings.lock_watchdog_timeout = 10min;
  return settings;
}

struct counted_fair_world : counted_world {
  counted_fair_world() : counted_world(quiet()) {}

  distributed_lock fair = own.get_fair_lock(name);

  // All connections are up, and the server knows all scripts.
  void warm_up(client& one) {
    auto const way = one.get_fair_lock("way");
    lease held = way.acquire();
    CHECK_FALSE(value_of(way.async_try_lock(owner::make(), brief_wait, asio::use_future)));
    held.release();
    REQUIRE(wait_until([&] {
      held = way.acquire();
      auto second = way.async_acquire(asio::use_future);
      wait_until([&] { return one.snapshot().subscriptions == 1; });
      held.release();
      value_of(std::move(second)).release();
      return one.snapshot().handed_off > 0;
    }));
    REQUIRE(warmed_up({way}));
  }
};

}  // namespace

TEST_CASE("fair lock: a free one costs one EVALSHA to take and one to release", "[server][fair][show]") {
  counted_fair_world w;
  w.warm_up(w.own);
  constexpr int rounds = 100;
  for (int i = 0; i < rounds; ++i) {
    w.fair.lock();
    w.fair.unlock();
  }
  CHECK(w.counter.take() == commands{{"EVALSHA", 2 * rounds}});
  for (int depth = 0; depth < 10; ++depth) w.fair.lock();
  for (int depth = 0; depth < 10; ++depth) w.fair.unlock();
  CHECK(w.counter.take() == commands{{"EVALSHA", 20}});
  for (int i = 0; i < rounds; ++i) value_of(w.fair.async_acquire(asio::use_future)).release();
  CHECK(w.counter.take() == commands{{"EVALSHA", 2 * rounds}});
}

TEST_CASE("fair lock: a contended one costs three tries, a subscription and its end", "[server][fair][show]") {
  counted_fair_world w;
  client other(w.server.uri(), quiet());
  w.warm_up(w.own);
  w.warm_up(other);
  lease held = w.fair.acquire();
  w.counter.take();
  auto const who = owner::make();
  stopwatch since;
  auto waiting = other.get_fair_lock(w.name).async_acquire({.owner = who}, asio::use_future);
  commands sent;
  auto const until = [&](commands expected, std::chrono::milliseconds limit = patience) {
    auto const tries = expected.at("EVALSHA");
    return wait_until(
        [&] {
          for (auto const& [name, times] : w.counter.take()) sent[name] += times;
          // The first one in line also looks by itself, twice a second.
          expected["EVALSHA"] = std::clamp(sent["EVALSHA"], tries, tries + static_cast<int>(since.passed() / 500ms));
          return sent == expected;
        },
        limit);
  };
  // It enters the queue, listens, and looks once more.
  CHECK(until({{"EVALSHA", 2}, {"SUBSCRIBE", 1}}));
  held.release();
  lease next = value_of(std::move(waiting));
  // The release, and the try after the message.
  CHECK(until({{"EVALSHA", 4}, {"SUBSCRIBE", 1}, {"UNSUBSCRIBE", 1}}));
  next.release();
  CHECK(until({{"EVALSHA", 5}, {"SUBSCRIBE", 1}, {"UNSUBSCRIBE", 1}}));

  // Inside one client the release grants: there is no message, and no third try. If the waiter was just looking for
  // itself it does not, so that this is tried until it does.
  CHECK(wait_until([&] {
    constexpr auto limit = 400ms * slowness;
    auto const before = other.snapshot().handed_off;
    held = other.get_fair_lock(w.name).acquire();
    sent = {};
    w.counter.take();
    since = {};
    waiting = other.get_fair_lock(w.name).async_acquire({.owner = who}, asio::use_future);
    bool const listens = until({{"EVALSHA", 2}, {"SUBSCRIBE", 1}}, limit);
    held.release();
    next = value_of(std::move(waiting));
    bool const passed_on = until({{"EVALSHA", 3}, {"SUBSCRIBE", 1}, {"UNSUBSCRIBE", 1}}, limit);
    next.release();
    return listens && passed_on && other.snapshot().handed_off == before + 1;
  }));

  // Who gives up pays one to leave.
  held = w.fair.acquire();
  sent = {};
  w.counter.take();
  auto brief = other.get_fair_lock(w.name).async_try_lock(who, brief_wait, asio::use_future);
  CHECK_FALSE(value_of(std::move(brief)));
  CHECK(wait_until([&] {
    for (auto const& [name, times] : w.counter.take()) sent[name] += times;
    return sent["UNSUBSCRIBE"] == 1 && w.admin.integer("EXISTS", "redisson_lock_queue:{lock}") == 0;
  }));
  // To enter, after the subscription, every third of the wait, to leave.
  CHECK(sent["SUBSCRIBE"] == 1);
  CHECK(sent["EVALSHA"] >= 3);
  CHECK(sent["EVALSHA"] <= 6);
}
