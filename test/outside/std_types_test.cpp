// What the standard library's guards, containers and stop tokens see of a lock.
#include <outside/outsider.hpp>
#include <support/catch.hpp>
#include <support/errors.hpp>
#include <support/event_log.hpp>

#include <future>
#include <mutex>
#include <shared_mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <unordered_map>
#include <unordered_set>

using namespace latchkey;
using namespace latchkey::outside;

TEST_CASE_METHOD(one_lock, "equal locks have equal hashes", "[outside][std]") {
  std::hash<distributed_lock> const hash;
  auto const again = ours.get_lock(name);
  CHECK(hash(lock) == hash(again));
  CHECK(hash(lock) == hash_value(again));
  auto const rw = ours.get_read_write_lock(name);
  auto const joined = ours.get_multi_lock({lock, ours.get_lock(name + "b")});
  auto const joined_again = ours.get_multi_lock({again, ours.get_lock(name + "b")});
  CHECK(hash(joined) == hash(joined_again));
  std::unordered_set<distributed_lock> const all{lock,           again,           second.get_lock(name),
                                                 rw.read_lock(), rw.write_lock(), ours.get_fair_lock(name),
                                                 joined,         joined_again,    ours.get_lock(name + "b")};
  CHECK(all.size() == 7);
  std::unordered_map<distributed_lock, int> counts;
  ++counts[lock];
  ++counts[again];
  CHECK(counts[lock] == 2);
}

TEST_CASE_METHOD(one_lock, "a lease says the name of its lock", "[outside][std]") {
  CHECK(lease().name().empty());
  lease held = lock.acquire();
  CHECK(held.name() == name);
  lease moved = std::move(held);
  CHECK(moved.name() == name);
  CHECK(moved.release() == release_result::released);
  CHECK(moved.name().empty());
  auto const other = ours.get_lock(name + "b");
  CHECK(ours.get_multi_lock({lock, other}).acquire().name() == name + "," + name + "b");
}

TEST_CASE_METHOD(one_lock, "lock with a stop token ends when a stop is asked for", "[outside][std]") {
  std::stop_source stop;
  REQUIRE(lock.lock(stop.get_token()));
  CHECK(lock.is_held_by_current_thread());
  lock.unlock();

  auto const theirs = second.get_lock(name);
  theirs.lock();
  test::event_log log;
  client third(shared_server().uri(), {.on_event = log.callback()});
  auto waiting = std::async(std::launch::async, [&] { return third.get_lock(name).lock(stop.get_token()); });
  REQUIRE(log.wait_for(event_type::waiting));
  stop.request_stop();
  CHECK_FALSE(test::value_of(std::move(waiting)));
  CHECK_FALSE(third.get_lock(name).lock(stop.get_token()));
  theirs.unlock();
  CHECK_FALSE(lock.lock(stop.get_token()));  // asked for before the call: nothing is sent
  CHECK_FALSE(shared_server().exists(name));
}

TEST_CASE_METHOD(two_clients, "a read-write lock works with the guards for shared mutexes", "[outside][std]") {
  auto mutex = ours.get_read_write_lock(name).as_shared_mutex();
  auto theirs = second.get_read_write_lock(name).as_shared_mutex();
  {
    std::shared_lock const reading(mutex);
    CHECK_FALSE(theirs.try_lock());
    std::shared_lock const also(theirs, 1s);
    CHECK(also.owns_lock());
    CHECK(test::error_of([&] { return theirs.try_lock(); }) == errc::would_deadlock);
  }
  {
    std::unique_lock const writing(mutex);
    CHECK_FALSE(std::shared_lock(theirs, std::try_to_lock).owns_lock());
    CHECK_FALSE(std::shared_lock(theirs, 0.001s).owns_lock());
    CHECK_FALSE(std::unique_lock(theirs, std::chrono::steady_clock::now() + 1ms).owns_lock());
    CHECK_FALSE(theirs.try_lock_shared_until(std::chrono::system_clock::now() + 1ms));
  }
  CHECK_FALSE(shared_server().exists(name));
  std::shared_lock later(mutex, std::defer_lock);
  CHECK(later.try_lock_for(1s));
  later.unlock();
  std::scoped_lock const both(mutex);
  CHECK(ours.get_read_write_lock(name).write_lock().is_held_by_current_thread());
}

TEST_CASE_METHOD(two_clients, "a failed unlock of a shared mutex is an event", "[outside][std]") {
  test::event_log log;
  client watched(shared_server().uri(), {.on_event = log.callback()});
  auto const mutex = watched.get_read_write_lock(name).as_shared_mutex();
  mutex.unlock();
  mutex.unlock_shared();
  CHECK(log.wait_for(event_type::unlock_failed, 2));
  CHECK(test::error_of([&] { return watched.get_read_write_lock(name).as_shared_mutex().try_lock(); }) == error_code());
}

TEST_CASE_METHOD(two_clients, "a semaphore sets its permits before its first acquire", "[outside][std]") {
  auto const mine = ours.get_semaphore(name, 3);
  CHECK_FALSE(shared_server().exists(name));
  REQUIRE(mine.try_acquire(2));
  CHECK(mine.available_permits() == 1);
  auto const others = second.get_semaphore(name, 10);
  CHECK_FALSE(others.try_acquire(2));
  CHECK(others.try_acquire());
  CHECK(others == second.get_semaphore(name));
  mine.release(3);
  CHECK(others.available_permits() == 3);
  auto const small = ours.get_semaphore(fresh_name(), 1);
  CHECK_FALSE(small.try_acquire(2));
  CHECK(small.available_permits() == 1);
  CHECK_FALSE(ours.get_semaphore(fresh_name(), 0).try_acquire());
  CHECK(test::error_of([&] { return ours.get_semaphore(name, -1); }) == errc::bad_argument);
}

TEST_CASE_METHOD(two_clients, "who waits for a semaphore without permits is woken by who brings them",
                 "[outside][std]") {
  auto waiting = std::async(std::launch::async, [&] { second.get_semaphore(name).acquire(); });
  while (second.snapshot().waiting == 0) std::this_thread::yield();
  CHECK(ours.get_semaphore(name, 2).try_acquire());
  CHECK(test::error_in(std::move(waiting), 5s) == error_code());
}
