// What a lease says and does while its hold lasts, and how it ends.
#include <latchkey/latchkey.hpp>
#include <support/catch.hpp>
#include <support/errors.hpp>
#include <support/run_coro.hpp>
#include <support/worlds.hpp>

#include <boost/asio/use_future.hpp>

#include <future>
#include <mutex>
#include <stop_token>
#include <thread>
#include <type_traits>
#include <vector>

using namespace latchkey;
using namespace latchkey::test;

static_assert(std::is_nothrow_move_constructible_v<lease> && std::is_nothrow_move_assignable_v<lease>);
static_assert(!std::is_copy_constructible_v<lease> && !std::is_copy_assignable_v<lease>);

TEST_CASE("an empty lease answers false, zero and nothing", "[server][contract]") {
  lease none;
  CHECK_FALSE(none);
  CHECK_FALSE(none.held());
  CHECK(none.remaining() == 0ms);
  CHECK(none.valid_until() <= clock::now());
  CHECK(none.fencing_token() == std::nullopt);
  CHECK_FALSE(none.lost().stop_requested());
  CHECK(none.owner() != owner::this_thread());
  none.on_lost([] { FAIL("nothing was lost"); });
  CHECK_FALSE(none.extend(1s));
  CHECK(none.release() == release_result::expired);
}

TEST_CASE("acquire takes a new owner, and a named one re-enters", "[server][contract]") {
  common_world w;
  lease first = w.lock.acquire();
  CHECK(first);
  CHECK(first.held());
  CHECK(first.owner() != owner::this_thread());
  CHECK(w.lock.is_held_by(first.owner()));
  CHECK_FALSE(w.lock.is_held_by_current_thread());
  CHECK_FALSE(w.lock.acquire({.wait = 0ms}));
  lease second = w.lock.acquire({.owner = first.owner()});
  CHECK(second.owner() == first.owner());
  CHECK(w.lock.hold_count(first.owner()) == 2);
  CHECK(second.release() == release_result::still_held);
  CHECK(first.held());
  CHECK(first.release() == release_result::released);
  CHECK_FALSE(first);
  CHECK_FALSE(first.held());
  CHECK(first.release() == release_result::expired);
  CHECK_FALSE(w.lock.is_locked());
}

TEST_CASE("a lease knows how long it may be trusted, from before the request was sent", "[server][contract]") {
  common_world w;
  auto const before = clock::now();
  lease held = w.lock.acquire({.lease = 20s});
  auto const after = clock::now();
  CHECK(held.valid_until() >= before + 20s - 5ms);
  CHECK(held.valid_until() <= after + 20s + 5ms);
  CHECK(held.remaining() <= 20s);
  CHECK(held.remaining() > 5s);
  CHECK(held.fencing_token() == std::nullopt);
  auto const left = milliseconds(w.admin.integer("PTTL", w.name));  // read before the clock
  CHECK(clock::now() + left + 5ms >= held.valid_until());
}

TEST_CASE("renewals move the trust on", "[server][contract]") {
  event_log log;
  auto settings = quick_config(log);
  settings.lock_watchdog_timeout = 2s * slowness;
  client own(common_server().uri(), settings);
  lease held = own.get_lock(new_name()).acquire();
  auto const first = held.valid_until();
  CHECK(wait_until([&] { return held.valid_until() > first + 1s; }));
  CHECK(held.held());
}

TEST_CASE("the destructor releases without waiting, before every later attempt of the client", "[server][contract]") {
  common_world w;
  for (int i = 0; i < 200; ++i) {
    lease held = w.lock.acquire({.wait = 0ms});
    REQUIRE(held);
  }
  CHECK(wait_until([&] { return !w.lock.is_locked(); }));
}

TEST_CASE("assigning to a lease releases what it held", "[server][contract]") {
  common_world w;
  auto const other = w.own.get_lock(new_name());
  lease held = w.lock.acquire();
  held = other.acquire();
  CHECK(wait_until([&] { return !w.lock.is_locked(); }));
  CHECK(other.is_locked());
  held = lease();
  CHECK(wait_until([&] { return !other.is_locked(); }));
}

TEST_CASE("async_release that is never started releases in the background", "[server][contract]") {
  common_world w;
  {
    lease held = w.lock.acquire();
    auto const later = held.async_release();
    CHECK_FALSE(held);
    CHECK(w.lock.is_locked());
  }
  CHECK(wait_until([&] { return !w.lock.is_locked(); }));
  CHECK(wait_until([&] { return w.own.snapshot().held == 0; }));
}

TEST_CASE("a moved lease takes the hold along", "[server][contract]") {
  common_world w;
  lease first = w.lock.acquire();
  auto const who = first.owner();
  lease second = std::move(first);
  CHECK_FALSE(first);
  CHECK(second.owner() == who);
  CHECK(second.held());
  CHECK(w.lock.is_held_by(who));
  CHECK(second.release() == release_result::released);
}

TEST_CASE("a lease may be released on another thread than it was acquired on", "[server][contract]") {
  common_world w;
  auto held = w.lock.acquire();
  CHECK(std::async(std::launch::async, [held = std::move(held)]() mutable { return held.release(); }).get() ==
        release_result::released);
}

TEST_CASE("release of a hold whose lease ran out says expired", "[server][contract]") {
  common_world w;
  lease held = w.lock.acquire({.lease = brief_lease});
  CHECK(wait_until([&] { return !held.held(); }));
  CHECK(held);
  CHECK(held.remaining() == 0ms);
  // The server began to count later.
  CHECK(wait_until([&] { return w.admin.integer("EXISTS", w.name) == 0; }));
  CHECK(held.release() == release_result::expired);
}

TEST_CASE("acquire gives an empty lease when a stop is asked for", "[server][contract]") {
  common_world w;
  lease held = w.lock.acquire();
  std::stop_source stop;
  auto waiter = std::async(std::launch::async, [&] { return w.lock.acquire({}, stop.get_token()); });
  REQUIRE(w.log.wait_for(event_type::waiting, w.name));
  stop.request_stop();
  CHECK_FALSE(value_of(std::move(waiter)));
  CHECK(held.release() == release_result::released);
  CHECK(wait_until([&] { return !w.lock.is_locked(); }));

  std::stop_source early;
  early.request_stop();
  CHECK_FALSE(w.lock.acquire({}, early.get_token()));
  CHECK(wait_until([&] { return !w.lock.is_locked(); }));
}

TEST_CASE("a stop after the grant changes nothing", "[server][contract]") {
  common_world w;
  std::stop_source stop;
  lease held = w.lock.acquire({}, stop.get_token());
  stop.request_stop();
  CHECK(held.held());
  CHECK(held.release() == release_result::released);
}

TEST_CASE("acquire in a thread that holds the lock waits in vain unless it names itself", "[server][contract]") {
  common_world w;
  w.lock.lock();
  CHECK(error_of([&] { return w.lock.acquire(); }) == errc::would_deadlock);
  CHECK_FALSE(w.lock.acquire({.wait = brief_wait}));
  lease again = w.lock.acquire({.owner = owner::this_thread()});
  CHECK(w.lock.hold_count() == 2);
  CHECK(again.release() == release_result::still_held);
  w.lock.unlock();
}

// extend and max_hold: how a holder changes the length of its lease.

namespace {

milliseconds ttl(common_world& w) { return milliseconds(w.admin.integer("PTTL", w.name)); }

}  // namespace

TEST_CASE("extend gives the hold a lease of this length from now", "[server][contract]") {
  common_world w;
  lease held = w.lock.acquire({.lease = 5s});
  auto const before = clock::now();
  CHECK(held.extend(50s));
  CHECK(held.valid_until() >= before + 50s - 5ms);
  CHECK(ttl(w) > 40s);
  CHECK(held.extend(10s));
  CHECK(held.remaining() <= 10s);
  CHECK(ttl(w) <= 10s);
  CHECK(held.async_extend(20s, asio::use_future).get());
  CHECK(held.remaining() > 10s);
}

TEST_CASE("extend ends the renewal of a watchdog hold", "[server][contract]") {
  event_log log;
  auto settings = quick_config(log);
  settings.lock_watchdog_timeout = 2s * slowness;
  client own(common_server().uri(), settings);
  auto const lock = own.get_lock(new_name());
  lease held = lock.acquire();
  CHECK(held.extend(brief_lease));
  CHECK(log.wait_for(event_type::lost, lock.name()));
  CHECK_FALSE(held.held());
  CHECK(wait_until([&] { return !lock.is_locked(); }));
}

TEST_CASE("extend never shortens what other holds of the owner need", "[server][contract]") {
  common_world w;
  lease renewed = w.lock.acquire();
  lease fixed = w.lock.acquire({.lease = 10s, .owner = renewed.owner()});
  CHECK(fixed.extend(5s));
  CHECK(fixed.remaining() <= 5s);
  CHECK(ttl(w) > 20s);
  CHECK(renewed.remaining() > 20s);
}

TEST_CASE("extend of a lost hold says false", "[server][contract]") {
  common_world w;
  lease held = w.lock.acquire({.lease = 20s});
  w.admin.ok("DEL", w.name);
  CHECK_FALSE(held.extend(10s));
  CHECK_FALSE(held.held());
  CHECK(wait_until([&] { return held.lost().stop_requested(); }));

  lease brief = w.lock.acquire({.lease = brief_lease});
  CHECK(wait_until([&] { return !brief.held(); }));
  CHECK_FALSE(brief.extend(10s));
  CHECK(ttl(w) <= brief_lease);
  CHECK(wait_until([&] { return !w.lock.is_locked(); }, 2s * slowness));  // the server counts from a later moment
}

TEST_CASE("extend refuses a length that is no lease and leaves the hold alone", "[server][contract]") {
  common_world w;
  lease held = w.lock.acquire({.lease = 20s});
  CHECK(error_of([&] { return held.extend(0ms); }) == errc::bad_argument);
  CHECK(error_of([&] { return held.extend(-1s); }) == errc::bad_argument);
  CHECK(error_of([&] { return held.extend(milliseconds::max()); }) == errc::bad_argument);
  CHECK(held.held());
  CHECK(held.remaining() > 5s);
}

TEST_CASE("max_hold ends the hold, and says so", "[server][contract]") {
  event_log log;
  auto settings = quick_config(log);
  settings.lock_watchdog_timeout = 1s * slowness;
  client own(common_server().uri(), settings);
  auto const lock = own.get_lock(new_name());
  stopwatch since;
  lease held = lock.acquire({.max_hold = brief_lease});
  CHECK(log.wait_for(event_type::max_hold_reached, lock.name()));
  CHECK(log.wait_for(event_type::lost, lock.name()));
  CHECK(since.passed() >= brief_lease);
  CHECK_FALSE(held.held());
  CHECK(wait_until([&] { return !lock.is_locked(); }));
}

TEST_CASE("max_hold goes neither with a lease nor without a length", "[server][contract]") {
  common_world w;
  CHECK(error_of([&] { return w.lock.acquire({.lease = 1s, .max_hold = 5s}); }) == errc::bad_argument);
  CHECK(error_of([&] { return w.lock.acquire({.max_hold = 0ms}); }) == errc::bad_argument);
  CHECK_FALSE(w.lock.is_locked());
}

// The guards of the standard library on a distributed lock and on its std_mutex.

TEST_CASE("lock_guard, unique_lock and scoped_lock hold a distributed lock", "[server][contract]") {
  common_world w;
  {
    std::lock_guard guard(w.lock);
    CHECK(w.lock.hold_count() == 1);
    std::unique_lock again(w.lock, std::try_to_lock);
    CHECK(again.owns_lock());
    CHECK(w.lock.hold_count() == 2);
    again.unlock();
    std::scoped_lock third(w.lock);
    CHECK(w.lock.hold_count() == 2);
  }
  CHECK_FALSE(w.lock.is_locked());
}

TEST_CASE("unique_lock waits for a time and for a point in time", "[server][contract]") {
  common_world w;
  client other(common_server().uri(), steady_config());
  auto const theirs = other.get_lock(w.name);
  theirs.lock();
  w.own.connect();
  std::unique_lock waiting(w.lock, std::defer_lock);
  CHECK_FALSE(waiting.try_lock_for(brief_wait));
  CHECK_FALSE(waiting.try_lock_until(std::chrono::steady_clock::now() + brief_wait));
  theirs.unlock();
  CHECK(waiting.try_lock_for(10s));
  waiting.unlock();
  CHECK_FALSE(w.lock.is_locked());
}

TEST_CASE("std::lock takes several locks in any order without deadlock", "[server][contract]") {
  common_world w;
  auto const first = w.lock;
  auto const second = w.own.get_lock(new_name());
  int count = 0;
  auto const work = [&](auto const& a, auto const& b) {
    for (int i = 0; i < 20; ++i) {
      std::lock(a, b);
      std::lock_guard one(a, std::adopt_lock);
      std::lock_guard two(b, std::adopt_lock);
      ++count;
    }
  };
  std::thread forward([&] { work(first, second); });
  std::thread backward([&] { work(second, first); });
  forward.join();
  backward.join();
  CHECK(count == 40);
}

TEST_CASE("scoped_lock takes locks of several clients", "[server][contract]") {
  common_world w;
  client other(common_server().uri(), steady_config());
  auto const elsewhere = other.get_lock(new_name());
  {
    std::scoped_lock both(w.lock, elsewhere);
    CHECK(w.lock.is_held_by_current_thread());
    CHECK(elsewhere.is_held_by_current_thread());
  }
  CHECK_FALSE(w.lock.is_locked());
  CHECK_FALSE(elsewhere.is_locked());
}

TEST_CASE("a std_mutex excludes threads", "[server][contract]") {
  common_world w;
  auto const mutex = w.lock.as_mutex();
  int count = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int k = 0; k < 25; ++k) {
        std::lock_guard guard(mutex);
        ++count;
      }
    });
  for (auto& thread : threads) thread.join();
  CHECK(count == 100);
  CHECK(mutex.try_lock());
  CHECK(mutex.try_lock_for(1s));
  CHECK(mutex.try_lock_until(std::chrono::steady_clock::now() + 1s));
  CHECK(w.lock.hold_count() == 3);
  for (int i = 0; i < 3; ++i) mutex.unlock();
  CHECK_FALSE(w.lock.is_locked());
}

TEST_CASE("a std_mutex reports a failed unlock as an event and does not throw", "[server][contract]") {
  common_world w;
  auto const mutex = w.lock.as_mutex();
  {
    std::lock_guard guard(mutex);
    w.admin.ok("DEL", w.name);
  }
  CHECK(w.log.last(event_type::unlock_failed).error == errc::lease_lost);
  static_assert(noexcept(mutex.unlock()));
}
