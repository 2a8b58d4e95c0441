// Cases 16 to 25: misuse by the callers themselves.
#include <latchkey/latchkey.hpp>
#include <support/catch.hpp>
#include <support/child_process.hpp>
#include <support/errors.hpp>
#include <support/run_coro.hpp>
#include <support/worlds.hpp>

#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <future>
#include <stdexcept>
#include <thread>
#include <type_traits>

using namespace latchkey;
using namespace latchkey::test;

static_assert(!std::is_copy_constructible_v<lease> && std::is_move_constructible_v<lease>, "case 21");

TEST_CASE("case 16: unlock by another thread or owner is not_owner and changes nothing", "[server][case-16]") {
  common_world w;
  w.lock.lock();
  auto const before = w.admin.hash(w.name);
  auto const calls = w.own.snapshot().scripts;
  CHECK(std::async(std::launch::async, [&] { return error_of([&] { w.lock.unlock(); }); }).get() == errc::not_owner);
  CHECK(error_in(w.lock.async_unlock(owner::make(), asio::use_future)) == errc::not_owner);
  CHECK(w.own.snapshot().scripts == calls);
  CHECK(w.admin.hash(w.name) == before);
  w.lock.unlock();
}

TEST_CASE("case 16: another process can not unlock, and the watchdog of the owner goes on", "[server][case-16]") {
  auto const uri = common_server().uri();
  auto const name = new_name();
  child_process other([&](child_process::channel& up) {
    up.hear();
    client own(uri, steady_config());
    up.say(error_of([&] { own.get_lock(name).unlock(); }) == errc::not_owner ? "refused" : "unlocked");
    return 0;
  });
  event_log log;
  auto settings = quick_config(log);
  settings.lock_watchdog_timeout = 2s * slowness;
  client own(uri, settings);
  auto const lock = own.get_lock(name);
  lock.lock();
  other.talk().say("go");
  CHECK(other.talk().hear() == "refused");
  auto const renewals = own.snapshot().renewals;
  CHECK(wait_until([&] { return own.snapshot().renewals >= renewals + 2; }));
  CHECK(lock.is_held_by_current_thread());
  lock.unlock();
}

TEST_CASE("case 17: a second unlock is not_owner and leaves a successor alone", "[server][case-17]") {
  common_world w;
  client other(common_server().uri(), steady_config());
  w.lock.lock();
  w.lock.unlock();
  CHECK(error_of([&] { w.lock.unlock(); }) == errc::not_owner);
  auto const theirs = other.get_lock(w.name);
  theirs.lock();
  auto const before = w.admin.hash(w.name);
  CHECK(error_of([&] { w.lock.unlock(); }) == errc::not_owner);
  CHECK(w.admin.hash(w.name) == before);
  theirs.unlock();
}

TEST_CASE("case 18: unlock after the lease ran out is lease_lost, whoever has the lock now", "[server][case-18]") {
  common_world w;
  client other(common_server().uri(), steady_config());
  auto const theirs = other.get_lock(w.name);

  w.lock.lock(brief_lease);
  CHECK(wait_until([&] { return w.admin.integer("EXISTS", w.name) == 0; }));
  CHECK(error_of([&] { w.lock.unlock(); }) == errc::lease_lost);

  w.lock.lock(brief_lease);
  theirs.lock();
  auto const before = w.admin.hash(w.name);
  CHECK(error_of([&] { w.lock.unlock(); }) == errc::lease_lost);
  CHECK(w.admin.hash(w.name) == before);
  theirs.unlock();
}

TEST_CASE("case 18: unlock of a hold that somebody removed is lease_lost", "[server][case-18]") {
  common_world w;
  w.lock.lock();
  w.admin.ok("DEL", w.name);
  CHECK(error_of([&] { w.lock.unlock(); }) == errc::lease_lost);
  CHECK(w.lock.try_lock());
  w.lock.unlock();
}

TEST_CASE("case 19: a count at its limit is refused and stays as it is", "[server][case-19]") {
  common_world w;
  w.lock.lock();
  auto const field = w.field(owner::this_thread());
  w.admin.ok("HSET", w.name, field, "9223372036854775807");
  CHECK(w.lock.hold_count() > 0);
  CHECK(error_of([&] { return w.lock.try_lock(); }) == errc::server_error);
  CHECK(w.admin.hash(w.name)[field] == "9223372036854775807");
  CHECK(w.admin.integer("PTTL", w.name) > 0);
  w.lock.unlock();
  CHECK_FALSE(w.lock.is_locked());
}

TEST_CASE("case 20: a re-entry never shortens what the outer hold needs", "[server][case-20]") {
  common_world w;
  auto const ttl = [&] { return milliseconds(w.admin.integer("PTTL", w.name)); };
  SECTION("a short lease inside a watchdog hold") {
    lease outer = w.lock.acquire();
    lease inner = w.lock.acquire({.lease = 5s, .owner = outer.owner()});
    CHECK(ttl() > 20s);
    CHECK(inner.remaining() <= 5s);
    CHECK(inner.release() == release_result::still_held);
    CHECK(ttl() > 20s);
    CHECK(outer.held());
  }
  SECTION("a short lease inside a long one") {
    lease outer = w.lock.acquire({.lease = 60s});
    lease inner = w.lock.acquire({.lease = 5s, .owner = outer.owner()});
    CHECK(ttl() > 40s);
    CHECK(inner.release() == release_result::still_held);
    CHECK(ttl() > 40s);
    CHECK(outer.remaining() > 40s);
  }
  SECTION("a long lease inside a short one ends with its release") {
    lease outer = w.lock.acquire({.lease = 20s});
    lease inner = w.lock.acquire({.lease = 60s, .owner = outer.owner()});
    CHECK(ttl() > 40s);
    CHECK(inner.release() == release_result::still_held);
    auto const left = ttl();  // read before the lease's own
    CHECK(left <= 20s);
    CHECK(left >= outer.remaining() - 5ms);
  }
  SECTION("a watchdog hold inside a short lease, the outer one released first") {
    lease outer = w.lock.acquire({.lease = 5s});
    lease inner = w.lock.acquire({.owner = outer.owner()});
    CHECK(outer.release() == release_result::still_held);
    CHECK(ttl() > 20s);
    CHECK(inner.held());
  }
}

TEST_CASE("case 21: a lease that is destroyed by an exception releases, without throwing or blocking",
          "[server][case-21]") {
  private_world w;
  auto const failing = [&] {
    lease held = w.lock.acquire();
    w.server.pause();
    throw std::runtime_error("unwinding");
  };
  stopwatch since;
  CHECK_THROWS_WITH(failing(), "unwinding");
  CHECK(since.passed() < steady_config().timeout);
  w.server.resume();
  CHECK(wait_until([&] { return w.admin.integer("EXISTS", w.name) == 0; }));
}

TEST_CASE("case 22: coroutines that lock as one owner are served one after the other with exact counts",
          "[server][case-22]") {
  using namespace asio::experimental::awaitable_operators;
  asio::io_context io;  // outlives the client, whose thread hands over to it
  common_world w;
  auto const me = owner::make();
  auto const twice = [](distributed_lock lock, owner who) -> asio::awaitable<void> {
    co_await lock.async_lock(who);
    co_await lock.async_lock(who);
  };
  auto const once = [](distributed_lock lock, owner who) -> asio::awaitable<void> { co_await lock.async_unlock(who); };
  for (int i = 0; i < 20; ++i) {
    run_coro(io, twice(w.lock, me) && twice(w.lock, me) && twice(w.lock, me));
    CHECK(wait_until([&] { return w.admin.hash(w.name)[w.field(me)] == "6"; }));  // within 5 ms
    run_coro(io, once(w.lock, me) && twice(w.lock, me) && once(w.lock, me));
    CHECK(wait_until([&] { return w.admin.hash(w.name)[w.field(me)] == "6"; }));  // within 5 ms
    run_coro(io, once(w.lock, me) && once(w.lock, me) && once(w.lock, me) && once(w.lock, me) && once(w.lock, me) &&
                     once(w.lock, me));
    CHECK(w.admin.integer("EXISTS", w.name) == 0);
  }
}

TEST_CASE("case 25: calls from inside handlers go on without end and without growing the stack", "[server][case-25]") {
  common_world w;
  auto const me = owner::make();
  std::promise<error_code> done;
  std::uintptr_t lowest = UINTPTR_MAX;
  std::uintptr_t highest = 0;
  int left = 6'000;
  // Every third call is answered by the server; the one between them is known to fail at once.
  std::function<void(error_code)> next = [&](error_code error) {
    char here = 0;
    lowest = std::min(lowest, reinterpret_cast<std::uintptr_t>(&here));
    highest = std::max(highest, reinterpret_cast<std::uintptr_t>(&here));
    if (error || left == 0) return done.set_value(error);
    switch (--left % 3) {
      case 2: return w.lock.async_lock(me, [&](error_code e) { next(e); });
      case 1: return w.lock.async_unlock(owner::make(), [&](error_code) { next({}); });
      default: return w.lock.async_unlock(me, [&](error_code e) { next(e); });
    }
  };
  w.lock.async_is_locked([&](error_code error, bool) { next(error); });
  CHECK(value_of(done.get_future(), patience * 2) == error_code{});
  CHECK(highest - lowest < 100'000);
}

TEST_CASE("case 25: on_lost may start calls of its client, also on the lost lock", "[server][case-25]") {
  common_world w;
  lease held = w.lock.acquire({.lease = brief_lease});
  std::promise<lease> again;
  held.on_lost([&] { w.lock.async_acquire([&](error_code, lease next) { again.set_value(std::move(next)); }); });
  CHECK(value_of(again.get_future()).held());
}
