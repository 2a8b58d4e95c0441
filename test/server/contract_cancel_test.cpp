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

#include <atomic>
#include <future>
#include <memory>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <thread>
#include <vector>

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

// Somebody else's lock, and a client that a test runs.
struct on_io {
  common_world w;
  asio::io_context io;
  event_log log;
  client own{io, common_server().uri(), steady_config(log)};
  distributed_lock const lock = own.get_lock(w.name);
};

}  // namespace

TEST_CASE_METHOD(on_io, "a waiting async_lock ends with operation_aborted for every kind of cancellation",
                 "[server][contract]") {
  auto const kind =
      GENERATE(asio::cancellation_type::terminal, asio::cancellation_type::partial, asio::cancellation_type::total);
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

TEST_CASE_METHOD(on_io, "a cancelled operation leaves the owner what it held before", "[server][contract]") {
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

TEST_CASE_METHOD(on_io, "an operation that is cancelled at once leaves no hold behind", "[server][contract]") {
  for (int i = 0; i < 20; ++i) {
    waiter one(io, lock);
    if (i % 2 == 1) io.poll();
    one.signal.emit(asio::cancellation_type::total);
    REQUIRE(one.ended());
    if (!*one.result) run_coro(io, lock.async_unlock(one.who, asio::use_awaitable));
  }
  CHECK(run_until(io, [&] { return own.snapshot().in_doubt == 0; }));
  CHECK(run_until(io, [&] { return w.admin.integer("EXISTS", w.name) == 0; }));
}

TEST_CASE_METHOD(on_io, "a cancelled head lets the next waiter try", "[server][contract]") {
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

TEST_CASE_METHOD(on_io, "cancellation after the grant changes nothing, and releases ignore it", "[server][contract]") {
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

TEST_CASE_METHOD(on_io, "async_acquire under || leaves no hold behind when the other side wins", "[server][contract]") {
  using namespace asio::experimental::awaitable_operators;
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

TEST_CASE_METHOD(on_io, "a waiting operation may be cancelled from a coroutine that is cancelled itself",
                 "[server][contract]") {
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

// How a holder learns that its hold is lost.

namespace {

// Renews every second or so: soon enough to see a loss, late enough not to lose anything on a slow machine.
config watched(event_log const& log) {
  auto settings = steady_config(log);
  settings.lock_watchdog_timeout = 3s * slowness;
  return settings;
}

struct watched_world {
  event_log log;
  raw_redis admin = common_server().admin();
  client own{common_server().uri(), watched(log)};
  distributed_lock lock = own.get_lock(new_name());

  void take_away() { admin.ok("DEL", lock.name()); }
};

}  // namespace

TEST_CASE("a lost hold asks its token to stop, tells its callback why, and is an event", "[server][contract]") {
  watched_world w;
  lease held = w.lock.acquire();
  std::promise<error_code> told;
  held.on_lost([&](error_code why) { told.set_value(why); });
  std::stop_token const token = held.lost();
  CHECK_FALSE(token.stop_requested());
  w.take_away();
  CHECK(value_of(told.get_future()) == errc::lease_lost);
  CHECK(wait_until([&] { return token.stop_requested(); }));
  CHECK(w.log.wait_for(event_type::lost, w.lock.name()));
  CHECK(w.log.last(event_type::lost).owner == held.owner());
  CHECK(held);
  CHECK_FALSE(held.held());
  CHECK(held.remaining() == 0ms);
  CHECK(held.release() == release_result::expired);
  CHECK(w.own.snapshot().lost == 1);
}

TEST_CASE("a later on_lost callback replaces an earlier one, and each is called at most once", "[server][contract]") {
  watched_world w;
  std::atomic<int> first{0};
  std::atomic<int> second{0};
  lease held = w.lock.acquire();
  held.on_lost([&] { ++first; });
  held.on_lost([&, proof = std::make_unique<int>(1)] { second += *proof; });
  w.take_away();
  CHECK(wait_until([&] { return second == 1; }));
  CHECK(first == 0);
}

TEST_CASE("an on_lost callback moves with its lease", "[server][contract]") {
  watched_world w;
  std::promise<void> told;
  lease first = w.lock.acquire();
  first.on_lost([&] { told.set_value(); });
  lease second = std::move(first);
  lease third;
  third = std::move(second);
  w.take_away();
  CHECK(told.get_future().wait_for(patience) == std::future_status::ready);
  CHECK(third);
}

TEST_CASE("on_lost of a hold that is lost already is called at once, on the client's executor", "[server][contract]") {
  asio::io_context io;
  client own(io, common_server().uri(), steady_config());
  auto held = run_coro(io, own.get_lock(new_name()).async_acquire({.lease = brief_lease}, asio::use_awaitable));
  CHECK(run_until(io, [&] { return held.lost().stop_requested(); }));
  bool called = false;
  held.on_lost([&] {
    CHECK(io.get_executor().running_in_this_thread());
    called = true;
  });
  CHECK_FALSE(called);
  CHECK(run_until(io, [&] { return called; }));
}

TEST_CASE("on_lost is never called for a release", "[server][contract]") {
  watched_world w;
  std::atomic<int> called{0};
  lease held = w.lock.acquire();
  auto const token = held.lost();
  held.on_lost([&] { ++called; });
  CHECK(held.release() == release_result::released);
  {
    lease dropped = w.lock.acquire();
    dropped.on_lost([&] { ++called; });
  }
  // A later hold of the same client that is really lost: what was told before it would have been told by now.
  lease last = w.lock.acquire();
  std::promise<void> told;
  last.on_lost([&] { told.set_value(); });
  w.take_away();
  CHECK(told.get_future().wait_for(patience) == std::future_status::ready);
  CHECK(called == 0);
  CHECK_FALSE(token.stop_requested());
}

TEST_CASE("after release has returned no callback runs, however close the loss was", "[server][contract]") {
  event_log log;
  client own(common_server().uri(), steady_config(log));
  std::atomic<int> late{0};
  // They end one after the other.
  std::vector<lease> all;
  for (int i = 0; i < 10; ++i) all.push_back(own.get_lock(new_name()).acquire({.lease = brief_lease + 20ms * i}));
  for (lease& held : all) {
    auto alive = std::make_shared<std::atomic<bool>>(true);
    held.on_lost([alive, &late] { late += !*alive; });
    while (held.remaining() > 1ms) std::this_thread::yield();
    static_cast<void>(held.release());
    *alive = false;
  }
  own.close();
  CHECK(late == 0);
}

TEST_CASE("closing the client is a loss with the reason closed", "[server][contract]") {
  auto own = std::make_unique<client>(common_server().uri(), steady_config());
  lease held = own->get_lock(new_name()).acquire();
  std::promise<error_code> told;
  held.on_lost([&](error_code why) { told.set_value(why); });
  own->close();
  CHECK(value_of(told.get_future()) == errc::closed);
  CHECK(held.lost().stop_requested());
  CHECK_FALSE(held.held());
  CHECK(error_of([&] { return held.release(); }) == errc::closed);
}

TEST_CASE("a stop callback on lost() may use the client", "[server][contract]") {
  watched_world w;
  lease held = w.lock.acquire();
  std::promise<error_code> asked;
  std::stop_callback const callback(
      held.lost(), [&] { w.lock.async_is_locked([&](error_code error, bool) { asked.set_value(error); }); });
  w.take_away();
  CHECK_FALSE(value_of(asked.get_future()));
}

TEST_CASE("an exception from on_lost is an event and does no harm", "[server][contract]") {
  watched_world w;
  lease held = w.lock.acquire();
  held.on_lost([] { throw std::runtime_error("from a callback"); });
  w.take_away();
  CHECK(w.log.wait_for(event_type::callback_failed));
  static_cast<void>(held.release());
  CHECK(w.lock.try_lock());
  w.lock.unlock();
}
