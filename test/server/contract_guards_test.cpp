// The guards of the standard library on a distributed lock and on its std_mutex.
#include <latchkey/latchkey.hpp>
#include <support/catch.hpp>
#include <support/errors.hpp>
#include <support/worlds.hpp>

#include <mutex>
#include <thread>
#include <vector>

using namespace latchkey;
using namespace latchkey::test;

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
  std::unique_lock waiting(w.lock, std::defer_lock);
  CHECK_FALSE(waiting.try_lock_for(20ms));
  CHECK_FALSE(waiting.try_lock_until(std::chrono::steady_clock::now() + 20ms));
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
  REQUIRE(w.log.wait_for(event_type::unlock_failed, w.name));
  CHECK(w.log.last(event_type::unlock_failed)->error == errc::lease_lost);
  static_assert(noexcept(mutex.unlock()));
}
