// Many callers of one client, and owners of many threads. What the lock protects is no atomic: a hole in it shows as a
// wrong sum.
#include <latchkey/latchkey.hpp>
#include <support/catch.hpp>
#include <support/run_coro.hpp>
#include <support/worlds.hpp>

#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>

#include <atomic>
#include <cstddef>
#include <future>
#include <iostream>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <unordered_set>
#include <vector>

namespace stress_many_callers {

using namespace latchkey;
using namespace latchkey::test;

namespace {

constexpr int coroutines = 200;
constexpr int turns = 20;

struct shared_sum {
  long value = 0;
  int inside = 0;
  bool overlapped = false;

  void add() {
    overlapped = overlapped || ++inside != 1;
    ++value;
    --inside;
  }
};

asio::awaitable<void> take_turns(distributed_lock lock, shared_sum& sum, std::atomic<int>& ended) {
  auto const me = owner::make();
  for (int turn = 0; turn < turns; ++turn) {
    co_await lock.async_lock(me);
    sum.add();
    co_await lock.async_unlock(me);
  }
  ++ended;
}

asio::awaitable<void> take_turns_with_leases(distributed_lock lock, shared_sum& sum, std::atomic<int>& ended) {
  for (int turn = 0; turn < turns; ++turn) {
    if (turn % 2 == 0) {
      lease held = co_await lock.async_acquire();
      sum.add();
    } else {
      co_await with_lock(lock, [&](lease&) -> asio::awaitable<void> {
        sum.add();
        co_return;
      });
    }
  }
  ++ended;
}

void report_failure(std::exception_ptr failure) {
  if (failure) std::rethrow_exception(failure);
}

void check(client const& own, shared_sum const& sum, long expected, stopwatch const& watch) {
  CHECK(sum.value == expected);
  CHECK_FALSE(sum.overlapped);
  auto const now = own.snapshot();
  CHECK(now.held == 0);
  CHECK(now.waiting == 0);
  CHECK(now.lost == 0);
  std::cout << expected << " turns in " << watch.passed().count() << " ms, " << now.commands << " commands\n";
}

}  // namespace

TEST_CASE("200 coroutines on one lock for 4,000 turns, on the caller's own context", "[stress]") {
  asio::io_context io;
  client own(io, common_server().uri(), steady_config());
  auto const lock = own.get_lock(new_name());
  shared_sum sum;
  std::atomic<int> ended = 0;
  stopwatch const watch;
  for (int i = 0; i < coroutines; ++i) asio::co_spawn(io, take_turns(lock, sum, ended), report_failure);
  REQUIRE(run_until(
      io, [&] { return ended == coroutines; }, 4 * patience));
  check(own, sum, coroutines * turns, watch);
}

TEST_CASE("200 coroutines on one lock for 4,000 turns, on a pool, the client on its own thread", "[stress]") {
  client own(common_server().uri(), steady_config());
  auto const lock = own.get_lock(new_name());
  shared_sum sum;
  std::atomic<int> ended = 0;
  stopwatch const watch;
  {
    asio::thread_pool pool(4);
    for (int i = 0; i < coroutines; ++i)
      asio::co_spawn(asio::make_strand(pool), take_turns(lock, sum, ended), report_failure);
    REQUIRE(wait_until([&] { return ended == coroutines; }, 4 * patience));
    pool.join();
  }
  check(own, sum, coroutines * turns, watch);
}

TEST_CASE("200 coroutines with leases and with_lock, all on one pool", "[stress]") {
  asio::thread_pool pool(4);
  shared_sum sum;
  std::atomic<int> ended = 0;
  stopwatch const watch;
  client own(pool.get_executor(), common_server().uri(), steady_config());
  auto const lock = own.get_lock(new_name());
  for (int i = 0; i < coroutines; ++i)
    asio::co_spawn(asio::make_strand(pool), take_turns_with_leases(lock, sum, ended), report_failure);
  REQUIRE(wait_until([&] { return ended == coroutines; }, 4 * patience));
  check(own, sum, coroutines * turns, watch);
  own.close();
  pool.join();
}

TEST_CASE("64 threads on one client and one lock", "[stress]") {
  client own(common_server().uri(), steady_config());
  auto const lock = own.get_lock(new_name());
  shared_sum sum;
  stopwatch const watch;
  std::vector<std::jthread> threads;
  for (int i = 0; i < 64; ++i)
    threads.emplace_back([&] {
      for (int turn = 0; turn < turns; ++turn) {
        lock.lock();
        sum.add();
        lock.unlock();
      }
    });
  threads.clear();
  check(own, sum, 64L * turns, watch);
}

TEST_CASE("64 threads on one client and four locks, in every way there is to take one", "[stress]") {
  client own(common_server().uri(), steady_config());
  std::vector<distributed_lock> locks;
  for (int i = 0; i < 4; ++i) locks.push_back(own.get_lock(new_name()));
  for (auto const& lock : locks) std::scoped_lock const connected(lock);
  std::vector<shared_sum> sums(locks.size());
  std::vector<std::jthread> threads;
  std::atomic<int> given_up = 0;
  std::atomic<int> unanswered = 0;
  for (unsigned i = 0; i < 64; ++i)
    threads.emplace_back([&, i] {
      for (unsigned turn = 0; turn < turns; ++turn) {
        auto const which = (i + turn) % locks.size();
        auto const& lock = locks[which];
        auto const add = [&] { sums[which].add(); };
        switch ((i + turn / 4) % 5) {
          case 0: {
            std::scoped_lock const guard(lock);
            add();
            break;
          }
          case 1: {
            lease const held = lock.acquire();
            add();
            break;
          }
          case 2: {  // most give up; what the lock is for is done all the same
            bool granted = false;
            try {
              granted = lock.try_lock(1ms);
              if (!granted) ++given_up;
            } catch (lock_error const& error) {  // not even an answer came in that time
              if (error.code() == errc::timeout)
                ++unanswered;
              else
                throw;
            }
            if (!granted) lock.lock();
            add();
            lock.unlock();
            break;
          }
          case 3: {
            lock.lock(30s);
            lock.lock();
            add();
            lock.unlock();
            lock.unlock();
            break;
          }
          default: {
            lease held = lock.acquire({.lease = 30s});
            add();
            held.release();
          }
        }
      }
    });
  threads.clear();
  std::cout << given_up << " waits of 1 ms found it busy, " << unanswered << " had no answer\n";
  for (auto const& sum : sums) {
    CHECK(sum.value == 64 * turns / 4);
    CHECK_FALSE(sum.overlapped);
  }
  CHECK(wait_until([&] { return own.snapshot().in_doubt == 0 && own.snapshot().held == 0; }));
  raw_redis admin = common_server().admin();
  for (auto const& lock : locks) CHECK(wait_until([&] { return admin.integer("EXISTS", lock.name()) == 0; }));
}

// The fair lock's order of arrival over clients, again and again.

TEST_CASE("fair lock: 8 waiters of 3 clients are served in order, 100 times", "[stress][fair]") {
  constexpr int runs = 100;
  constexpr std::size_t waiters = 8;
  redis_server server;
  auto admin = server.admin();
  std::vector<std::unique_ptr<client>> clients;
  for (int i = 0; i < 3; ++i) clients.push_back(std::make_unique<client>(server.uri(), steady_config()));
  int in_order = 0;
  for (int run = 0; run < runs; ++run) {
    auto const name = "run-" + std::to_string(run);
    auto const queue = "redisson_lock_queue:{" + name + "}";
    lease held = clients[0]->get_fair_lock(name).acquire();
    std::mutex mutex;
    std::vector<std::size_t> served;
    std::vector<std::future<void>> over;
    std::vector<std::promise<void>> promises(waiters);
    for (std::size_t i = 0; i < waiters; ++i) {
      over.push_back(promises[i].get_future());
      clients[(i * 7 + static_cast<std::size_t>(run)) % 3]->get_fair_lock(name).async_acquire(
          [&, i](error_code error, lease one) {
            if (!error && one.held()) {
              std::scoped_lock const lock(mutex);
              served.push_back(i);
            }
            one = {};
            promises[i].set_value();
          });
      REQUIRE(wait_until([&] { return admin.integer("LLEN", queue) == static_cast<std::int64_t>(i) + 1; }));
    }
    held.release();
    for (auto& one : over) REQUIRE(one.wait_for(patience) == std::future_status::ready);
    std::vector<std::size_t> expected(waiters);
    for (std::size_t i = 0; i < waiters; ++i) expected[i] = i;
    in_order += served == expected;
  }
  CHECK(in_order == runs);
}

TEST_CASE("owners are never given out twice, over all threads", "[stress]") {
  constexpr std::size_t each = 1'000;
  std::vector<std::vector<owner>> made(8);
  {
    std::vector<std::jthread> threads;
    for (auto& mine : made)
      threads.emplace_back([&mine] {
        for (std::size_t i = 0; i < each; ++i) mine.push_back(owner::make());
      });
  }
  std::unordered_set<owner> all;
  for (auto const& mine : made) all.insert(mine.begin(), mine.end());
  CHECK(all.size() == made.size() * each);
}

TEST_CASE("a thread keeps its owner, and the next thread gets another", "[stress]") {
  CHECK(owner::this_thread() == owner::this_thread());
  std::set<owner> seen{owner::this_thread()};
  for (int i = 0; i < 20; ++i) {
    std::optional<owner> theirs;
    std::jthread([&] { theirs = owner::this_thread(); }).join();
    CHECK(seen.insert(*theirs).second);
  }
}

}  // namespace stress_many_callers
