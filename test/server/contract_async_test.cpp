// The asynchronous members of distributed_lock with every kind of completion token.
#include <latchkey/latchkey.hpp>
#include <support/catch.hpp>
#include <support/errors.hpp>
#include <support/run_coro.hpp>
#include <support/worlds.hpp>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>

#include <algorithm>
#include <atomic>
#include <future>
#include <memory>
#include <thread>
#include <vector>

using namespace latchkey;
using namespace latchkey::test;
namespace asio = boost::asio;

TEST_CASE("a coroutine locks, asks and unlocks as the owner it names", "[server][contract]") {
  common_world w;
  run_coro([](common_world& world) -> asio::awaitable<void> {
    auto const& lock = world.lock;
    auto const me = owner::make();
    auto const you = owner::make();
    co_await lock.async_lock(me);
    check_equal(co_await lock.async_is_locked(), true);
    check_equal(co_await lock.async_is_held_by(me), true);
    check_equal(co_await lock.async_is_held_by(you), false);
    check_equal(co_await lock.async_try_lock(me), true);
    check_equal(co_await lock.async_hold_count(me), 2);
    check_equal(co_await lock.async_try_lock(you), false);
    check_equal(co_await lock.async_try_lock(you, brief_wait), false);
    check_equal(co_await lock.async_try_lock(you, brief_wait, 5s), false);
    co_await lock.async_unlock(me);
    co_await lock.async_unlock(me);
    check_equal(co_await lock.async_remaining_time_to_live(), std::nullopt);
    check_equal(co_await lock.async_force_unlock(), false);
  }(w));
  CHECK(w.admin.integer("EXISTS", w.name) == 0);
}

TEST_CASE("a duration in async_lock is a lease, in async_try_lock a wait", "[server][contract]") {
  common_world w;
  run_coro([](common_world& world) -> asio::awaitable<void> {
    auto const& lock = world.lock;
    auto const me = owner::make();
    co_await lock.async_lock(me, 5s);
    auto const fixed = co_await lock.async_remaining_time_to_live();
    CHECK(fixed.value() <= 5s);
    co_await lock.async_unlock(me);
    check_equal(co_await lock.async_try_lock(me, 5s), true);
    auto const watched = co_await lock.async_remaining_time_to_live();
    CHECK(watched.value() > 5s);
    co_await lock.async_unlock(me);
    check_equal(co_await lock.async_try_lock(me, 5s, 6s), true);
    auto const both = co_await lock.async_remaining_time_to_live();
    CHECK(both.value() <= 6s);
    check_equal(co_await lock.async_force_unlock(), true);
  }(w));
}

TEST_CASE("use_future gives futures of the results", "[server][contract]") {
  common_world w;
  auto const me = owner::make();
  std::future<void> locked = w.lock.async_lock(me, asio::use_future);
  value_of(std::move(locked));
  std::future<bool> tried = w.lock.async_try_lock(me, 1s, asio::use_future);
  CHECK(tried.get());
  std::future<int> count = w.lock.async_hold_count(me, asio::use_future);
  CHECK(count.get() == 2);
  w.lock.async_unlock(me, asio::use_future).get();
  w.lock.async_unlock(me, asio::use_future).get();
  std::future<lease> acquired = w.lock.async_acquire(asio::use_future);
  lease held = acquired.get();
  CHECK(held.held());
  CHECK(held.async_release(asio::use_future).get() == release_result::released);
}

TEST_CASE("errors come as system_error through tokens that throw", "[server][contract]") {
  common_world w;
  auto failed = w.lock.async_unlock(owner::make(), asio::use_future);
  try {
    failed.get();
    FAIL("nothing was thrown");
  } catch (boost::system::system_error const& error) {
    CHECK(error.code() == errc::not_owner);
  }
  auto const code = run_coro([](distributed_lock lock) -> asio::awaitable<error_code> {
    auto [error] = co_await lock.async_unlock(owner::make(), asio::as_tuple(asio::use_awaitable));
    co_return error;
  }(w.lock));
  CHECK(code == errc::not_owner);
}

TEST_CASE("handlers may be move-only", "[server][contract]") {
  common_world w;
  std::promise<std::pair<error_code, bool>> done;
  w.lock.async_try_lock(owner::make(), [&done, proof = std::make_unique<int>(1)](error_code error, bool held) {
    done.set_value({error, held && *proof == 1});
  });
  CHECK(value_of(done.get_future()) == std::pair{error_code{}, true});
}

TEST_CASE("a callback runs on its associated executor and never inside the initiating call", "[server][contract]") {
  asio::io_context io;  // outlives the client, whose thread hands over to it
  common_world w;
  bool inside = true;
  bool called = false;
  w.lock.async_lock(owner::make(), asio::bind_executor(io, [&](error_code error) {
                      CHECK_FALSE(error);
                      CHECK(io.get_executor().running_in_this_thread());
                      CHECK_FALSE(inside);
                      called = true;
                    }));
  inside = false;
  auto const work = asio::make_work_guard(io);
  CHECK(run_until(io, [&] { return called; }));

  // Also when the answer is known at once.
  called = false;
  inside = true;
  w.lock.async_unlock(owner::make(), asio::bind_executor(io, [&](error_code error) {
                        CHECK(error == errc::not_owner);
                        CHECK_FALSE(inside);
                        called = true;
                      }));
  inside = false;
  CHECK(run_until(io, [&] { return called; }));
}

TEST_CASE("handlers of calls that are answered together run in the order of the calls", "[server][contract]") {
  asio::io_context io;
  client own(io, common_server().uri(), steady_config());
  std::vector<distributed_lock> locks;
  for (int i = 0; i < 5; ++i) locks.push_back(own.get_lock(new_name()));
  auto const me = owner::make();
  run_coro(io, locks[0].async_lock(me, asio::use_awaitable));
  for (int turn = 0; turn < 10; ++turn) {
    std::vector<int> order;
    for (int i = 0; i < 5; ++i)
      locks[static_cast<std::size_t>(i)].async_try_lock(me, [&order, i](error_code, bool) { order.push_back(i); });
    REQUIRE(run_until(io, [&] { return order.size() == 5; }));
    CHECK(order == std::vector{0, 1, 2, 3, 4});
  }
  own.close();
}

TEST_CASE("a handler that keeps its thread keeps nobody from a client that another thread runs too",
          "[server][contract]") {
  asio::io_context io;
  client own(io, common_server().uri(), steady_config());
  auto const work = asio::make_work_guard(io);
  std::thread one([&] { io.run(); });
  std::thread two([&] { io.run(); });
  for (int i = 0; i < 20; ++i) {
    std::promise<void> entered, other_is_done;
    auto wait = other_is_done.get_future();
    std::promise<bool> left;
    own.get_lock(new_name()).async_lock(owner::make(), [&](error_code failed) {
      entered.set_value();
      left.set_value(!failed && wait.wait_for(patience) == std::future_status::ready);
    });
    entered.get_future().wait();
    auto const lock = own.get_lock(new_name());
    auto const me = owner::make();
    auto taken = lock.async_try_lock(me, asio::use_future);
    CHECK(taken.wait_for(patience) == std::future_status::ready);
    other_is_done.set_value();
    CHECK(left.get_future().get());
  }
  own.close();
  io.stop();
  one.join();
  two.join();
}

TEST_CASE("a callback without an executor runs on the client's", "[server][contract]") {
  asio::io_context io;
  client own(io, common_server().uri(), steady_config());
  bool called = false;
  own.get_lock(new_name()).async_lock(owner::make(), [&](error_code error) {
    CHECK_FALSE(error);
    CHECK(io.get_executor().running_in_this_thread());
    called = true;
  });
  CHECK(run_until(io, [&] { return called; }));
}

TEST_CASE("deferred operations start when they are awaited, and as often as they are", "[server][contract]") {
  common_world w;
  auto const me = owner::make();
  auto const later = w.lock.async_lock(me);
  CHECK_FALSE(w.lock.is_locked());
  run_coro([](auto operation) -> asio::awaitable<void> {
    co_await operation(asio::use_awaitable);
    co_await operation(asio::use_awaitable);
  }(later));
  CHECK(w.lock.hold_count(me) == 2);
  CHECK(w.lock.force_unlock());
}

TEST_CASE("two owners on one thread exclude each other and two calls of one owner share the hold",
          "[server][contract]") {
  common_world w;
  run_coro([](distributed_lock lock) -> asio::awaitable<void> {
    auto const me = owner::make();
    auto const you = owner::make();
    CHECK(me != you);
    co_await lock.async_lock(me);
    check_equal(co_await lock.async_try_lock(you), false);
    co_await lock.async_lock(me);
    check_equal(co_await lock.async_hold_count(me), 2);
    co_await lock.async_unlock(me);
    co_await lock.async_unlock(me);
    co_await lock.async_lock(you);
    co_await lock.async_unlock(you);
  }(w.lock));
  CHECK_FALSE(w.lock.is_locked());
}

TEST_CASE("async_acquire gives a lease, empty if still busy when the wait ended", "[server][contract]") {
  common_world w;
  run_coro([](distributed_lock lock) -> asio::awaitable<void> {
    lease first = co_await lock.async_acquire();
    CHECK(first.held());
    acquire_options options;
    options.wait = brief_wait;
    lease second = co_await lock.async_acquire(options);
    CHECK_FALSE(second);
    options.owner = first.owner();
    lease third = co_await lock.async_acquire(options);
    CHECK(third.held());
    check_equal(co_await third.async_release(), release_result::still_held);
    check_equal(co_await first.async_release(), release_result::released);
  }(w.lock));
}

TEST_CASE("coroutines of one client take turns on one lock", "[server][contract]") {
  asio::io_context io;  // outlives the client, whose thread hands over to it
  common_world w;
  int inside = 0;
  int most = 0;
  int turns = 0;
  auto const task = [&]() -> asio::awaitable<void> {
    auto const me = owner::make();
    for (int i = 0; i < 10; ++i) {
      co_await w.lock.async_lock(me);
      most = std::max(most, ++inside);
      ++turns;
      co_await asio::post(io, asio::use_awaitable);
      --inside;
      co_await w.lock.async_unlock(me);
    }
  };
  std::atomic<int> done{0};
  for (int i = 0; i < 10; ++i) asio::co_spawn(io, task(), [&](std::exception_ptr failure) { done += !failure; });
  CHECK(run_until(io, [&] { return done == 10; }));
  CHECK(turns == 100);
  CHECK(most == 1);
}
