// Cancellation of single operations.
#include <latchkey/latchkey.hpp>
#include <support/catch.hpp>
#include <support/errors.hpp>
#include <support/run_coro.hpp>
#include <support/worlds.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>

#include <future>
#include <optional>

using namespace latchkey;
using namespace latchkey::test;

namespace {

// A waiting async_lock that can be cancelled, on a client that runs on `io`.
struct waiter {
  waiter(asio::io_context& io, distributed_lock const& lock) : io_(io) {
    lock.async_lock(who, asio::bind_cancellation_slot(signal.slot(), [this](error_code error) { result = error; }));
  }
  bool ended() {
    return run_until(io_, [&] { return result.has_value(); });
  }
  asio::io_context& io_;
  owner who = owner::make();
  asio::cancellation_signal signal;
  std::optional<error_code> result;
};

}  // namespace

TEST_CASE("a waiting async_lock ends with operation_aborted for every kind of cancellation", "[server][contract]") {
  auto const kind =
      GENERATE(asio::cancellation_type::terminal, asio::cancellation_type::partial, asio::cancellation_type::total);
  common_world w;
  asio::io_context io;
  event_log log;
  client own(io, common_server().uri(), steady_config(log));
  auto const lock = own.get_lock(w.name);
  w.lock.lock();
  waiter one(io, lock);
  REQUIRE(run_until(io, [&] { return log.count(event_type::waiting) == 1; }));
  one.signal.emit(kind);
  CHECK_FALSE(one.result);
  REQUIRE(one.ended());
  CHECK(*one.result == asio::error::operation_aborted);
  CHECK(own.snapshot().waiting == 0);
  w.lock.unlock();
  CHECK(run_coro(io, lock.async_is_locked(asio::use_awaitable)) == false);
}

TEST_CASE("a cancelled operation leaves the owner what it held before", "[server][contract]") {
  common_world w;
  asio::io_context io;
  client own(io, common_server().uri(), steady_config());
  auto const lock = own.get_lock(w.name);
  auto const me = owner::make();
  run_coro(io, lock.async_lock(me, asio::use_awaitable));
  asio::cancellation_signal signal;
  std::optional<error_code> result;
  lock.async_lock(me, asio::bind_cancellation_slot(signal.slot(), [&](error_code error) { result = error; }));
  signal.emit(asio::cancellation_type::terminal);
  REQUIRE(run_until(io, [&] { return result.has_value(); }));
  CHECK(*result == asio::error::operation_aborted);
  CHECK(may_still_be_held(*result));
  CHECK(run_until(io, [&] { return w.admin.hash(w.name)[own.id() + ":" + to_string(me)] == "1"; }));
  run_coro(io, lock.async_unlock(me, asio::use_awaitable));
  CHECK(run_until(io, [&] { return w.admin.integer("EXISTS", w.name) == 0; }));
}

TEST_CASE("an operation that is cancelled at once leaves no hold behind", "[server][contract]") {
  common_world w;
  asio::io_context io;
  client own(io, common_server().uri(), steady_config());
  for (int i = 0; i < 20; ++i) {
    waiter one(io, own.get_lock(w.name));
    if (i % 2 == 1) io.poll();
    one.signal.emit(asio::cancellation_type::total);
    REQUIRE(one.ended());
    if (!*one.result) run_coro(io, own.get_lock(w.name).async_unlock(one.who, asio::use_awaitable));
  }
  CHECK(run_until(io, [&] { return own.snapshot().in_doubt == 0; }));
  CHECK(run_until(io, [&] { return w.admin.integer("EXISTS", w.name) == 0; }));
}

TEST_CASE("a cancelled head lets the next waiter try", "[server][contract]") {
  common_world w;
  asio::io_context io;
  event_log log;
  client own(io, common_server().uri(), steady_config(log));
  auto const lock = own.get_lock(w.name);
  w.lock.lock();
  waiter first(io, lock);
  waiter second(io, lock);
  REQUIRE(run_until(io, [&] { return own.snapshot().waiting == 2; }));
  first.signal.emit(asio::cancellation_type::terminal);
  REQUIRE(first.ended());
  w.lock.unlock();
  REQUIRE(second.ended());
  CHECK_FALSE(*second.result);
}

TEST_CASE("cancellation after the grant changes nothing, and releases ignore it", "[server][contract]") {
  common_world w;
  asio::io_context io;
  client own(io, common_server().uri(), steady_config());
  auto const lock = own.get_lock(w.name);
  waiter one(io, lock);
  REQUIRE(one.ended());
  CHECK_FALSE(*one.result);
  one.signal.emit(asio::cancellation_type::terminal);
  CHECK(run_coro(io, lock.async_is_held_by(one.who, asio::use_awaitable)));
  asio::cancellation_signal signal;
  std::optional<error_code> result;
  lock.async_unlock(one.who, asio::bind_cancellation_slot(signal.slot(), [&](error_code error) { result = error; }));
  signal.emit(asio::cancellation_type::terminal);
  REQUIRE(run_until(io, [&] { return result.has_value(); }));
  CHECK_FALSE(*result);
  CHECK(w.admin.integer("EXISTS", w.name) == 0);
}

TEST_CASE("async_acquire under || leaves no hold behind when the other side wins", "[server][contract]") {
  using namespace asio::experimental::awaitable_operators;
  common_world w;
  asio::io_context io;
  client own(io, common_server().uri(), steady_config());
  auto const lock = own.get_lock(w.name);
  w.lock.lock();
  auto const winner = run_coro(io, [](distributed_lock k, asio::io_context& context) -> asio::awaitable<std::size_t> {
    asio::steady_timer timer(context, 20ms);
    auto result = co_await (k.async_acquire(asio::use_awaitable) || timer.async_wait(asio::use_awaitable));
    co_return result.index();
  }(lock, io));
  CHECK(winner == 1);
  w.lock.unlock();
  // Also when both are ready at about the same time.
  for (int i = 0; i < 20; ++i)
    run_coro(io, [](distributed_lock k, asio::io_context& context, int us) -> asio::awaitable<void> {
      asio::steady_timer timer(context, std::chrono::microseconds(us));
      co_await (k.async_acquire(asio::use_awaitable) || timer.async_wait(asio::use_awaitable));
    }(lock, io, i * 20));
  CHECK(run_until(io, [&] { return w.admin.integer("EXISTS", w.name) == 0; }));
  CHECK(own.snapshot().held == 0);
}

TEST_CASE("a waiting operation may be cancelled from a coroutine that is cancelled itself", "[server][contract]") {
  common_world w;
  asio::io_context io;
  event_log log;
  client own(io, common_server().uri(), steady_config(log));
  auto const lock = own.get_lock(w.name);
  w.lock.lock();
  asio::cancellation_signal signal;
  std::exception_ptr failure;
  bool ended = false;
  asio::co_spawn(
      io, [](distributed_lock k) -> asio::awaitable<void> { co_await k.async_lock(owner::make()); }(lock),
      asio::bind_cancellation_slot(signal.slot(), [&](std::exception_ptr why) {
        failure = why;
        ended = true;
      }));
  REQUIRE(run_until(io, [&] { return log.count(event_type::waiting) == 1; }));
  signal.emit(asio::cancellation_type::terminal);
  REQUIRE(run_until(io, [&] { return ended; }));
  CHECK(failure);
  w.lock.unlock();
}
