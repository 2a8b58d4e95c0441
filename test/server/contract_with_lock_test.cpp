// with_lock: a coroutine under a lock, awaited, released on every way out, cancelled when the hold is lost.
#include <latchkey/latchkey.hpp>
#include <support/catch.hpp>
#include <support/errors.hpp>
#include <support/run_coro.hpp>
#include <support/worlds.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>

#include <memory>
#include <stdexcept>
#include <string>

using namespace latchkey;
using namespace latchkey::test;

namespace {

struct with_lock_world {
  common_world w;
  asio::io_context io;
  event_log log;
  client own{io, common_server().uri(), steady_config(log)};
  distributed_lock lock = own.get_lock(w.name);

  bool free_again() {
    return run_until(io, [&] { return w.admin.integer("EXISTS", w.name) == 0; });
  }
};

}  // namespace

TEST_CASE("with_lock holds while the body runs and gives its result", "[server][contract]") {
  with_lock_world s;
  auto const result = run_coro(s.io, [](with_lock_world& world) -> asio::awaitable<std::string> {
    co_return co_await with_lock(
        world.lock,
        [&](lease& held) -> asio::awaitable<std::string> {
          CHECK(held.held());
          check_equal(co_await world.lock.async_is_held_by(held.owner()), true);
          co_return "done";
        },
        asio::use_awaitable);
  }(s));
  CHECK(result == "done");
  CHECK(s.w.admin.integer("EXISTS", s.w.name) == 0);
}

TEST_CASE("with_lock takes options, and bodies may be void and give move-only values", "[server][contract]") {
  with_lock_world s;
  run_coro(s.io, [](with_lock_world& world) -> asio::awaitable<void> {
    acquire_options options;
    options.lease = 7s;
    options.owner = owner::make();
    co_await with_lock(world.lock, options, [&](lease& held) -> asio::awaitable<void> {
      CHECK(held.owner() == options.owner);
      CHECK(held.remaining() <= 7s);
      co_return;
    });
    auto const number = co_await with_lock(
        world.lock, [](lease&) -> asio::awaitable<std::unique_ptr<int>> { co_return std::make_unique<int>(5); },
        asio::use_awaitable);
    CHECK(*number == 5);
  }(s));
  CHECK(s.w.admin.integer("EXISTS", s.w.name) == 0);
}

TEST_CASE("with_lock releases and passes on what the body throws", "[server][contract]") {
  with_lock_world s;
  auto const failing = [](with_lock_world& world) -> asio::awaitable<void> {
    co_await with_lock(world.lock, [](lease&) -> asio::awaitable<void> {
      throw std::runtime_error("from the body");
      co_return;
    });
  };
  CHECK_THROWS_WITH(run_coro(s.io, failing(s)), "from the body");
  CHECK(s.w.admin.integer("EXISTS", s.w.name) == 0);
}

TEST_CASE("with_lock says busy when the wait ended, and the body does not run", "[server][contract]") {
  with_lock_world s;
  REQUIRE(connect_on(s.io, s.own));
  s.w.lock.lock();
  bool ran = false;
  auto const waiting = [](with_lock_world& world, bool& flag) -> asio::awaitable<void> {
    acquire_options options;
    options.wait = brief_wait;
    co_await with_lock(world.lock, options, [&](lease&) -> asio::awaitable<void> {
      flag = true;
      co_return;
    });
  };
  CHECK(error_of([&] { run_coro(s.io, waiting(s, ran)); }) == errc::busy);
  CHECK_FALSE(ran);
  s.w.lock.unlock();
}

TEST_CASE("with_lock cancels the body when the hold is lost and says lease_lost", "[server][contract]") {
  with_lock_world s;
  bool cancelled = false;
  auto const losing = [](with_lock_world& world, bool& flag) -> asio::awaitable<void> {
    acquire_options options;
    options.lease = brief_lease;
    co_await with_lock(world.lock, options, [&](lease&) -> asio::awaitable<void> {
      try {
        co_await wait_for_ever();
      } catch (boost::system::system_error const& error) {
        flag = error.code() == asio::error::operation_aborted;
        throw;
      }
    });
  };
  CHECK(error_of([&] { run_coro(s.io, losing(s, cancelled)); }) == errc::lease_lost);
  CHECK(cancelled);
}

TEST_CASE("with_lock says lease_lost although the body finished its way", "[server][contract]") {
  with_lock_world s;
  auto const losing = [](with_lock_world& world) -> asio::awaitable<int> {
    acquire_options options;
    options.lease = brief_lease;
    co_return co_await with_lock(world.lock, options, [&](lease&) -> asio::awaitable<int> {
      try {
        co_await wait_for_ever();
      } catch (boost::system::system_error const&) {
        // A body that swallows its cancellation still worked without the lock.
      }
      co_return 1;
    });
  };
  CHECK(error_of([&] { run_coro(s.io, losing(s)); }) == errc::lease_lost);
}

TEST_CASE("with_lock passes an outer cancellation to the body, awaits it, and releases", "[server][contract]") {
  with_lock_world s;
  asio::cancellation_signal signal;
  bool inside = false;
  bool left = false;
  bool ended = false;
  auto const body = [&](lease&) -> asio::awaitable<void> {
    inside = true;
    try {
      co_await wait_for_ever();
    } catch (boost::system::system_error const&) {
      left = true;
      throw;
    }
  };
  asio::co_spawn(
      s.io,
      [](with_lock_world& world, auto const& work) -> asio::awaitable<void> { co_await with_lock(world.lock, work); }(
                                                       s, body),
      asio::bind_cancellation_slot(signal.slot(), [&](std::exception_ptr failure) {
        CHECK(failure);
        CHECK(left);
        ended = true;
      }));
  REQUIRE(run_until(s.io, [&] { return inside; }));
  signal.emit(asio::cancellation_type::terminal);
  CHECK(run_until(s.io, [&] { return ended; }));
  CHECK(s.free_again());
}

TEST_CASE("with_lock that is cancelled while it waits runs no body", "[server][contract]") {
  with_lock_world s;
  s.w.lock.lock();
  asio::cancellation_signal signal;
  bool ran = false;
  bool ended = false;
  auto const body = [&](lease&) -> asio::awaitable<void> {
    ran = true;
    co_return;
  };
  asio::co_spawn(
      s.io,
      [](with_lock_world& world, auto const& work) -> asio::awaitable<void> { co_await with_lock(world.lock, work); }(
                                                       s, body),
      asio::bind_cancellation_slot(signal.slot(), [&](std::exception_ptr failure) {
        CHECK(failure);
        ended = true;
      }));
  REQUIRE(run_until(s.io, [&] { return s.log.count(event_type::waiting) == 1; }));
  signal.emit(asio::cancellation_type::terminal);
  CHECK(run_until(s.io, [&] { return ended; }));
  CHECK_FALSE(ran);
  s.w.lock.unlock();
  CHECK(s.free_again());
}

TEST_CASE("with_lock tells errors as lock_error", "[server][contract]") {
  with_lock_world s;
  s.w.admin.ok("SET", s.w.name, "text");
  auto const failing = [](with_lock_world& world) -> asio::awaitable<void> {
    co_await with_lock(world.lock, [](lease&) -> asio::awaitable<void> { co_return; });
  };
  auto const error = thrown_by([&] { run_coro(s.io, failing(s)); });
  CHECK(error.code() == errc::wrong_type);
  s.w.admin.ok("DEL", s.w.name);
}

TEST_CASE("with_lock works with futures and recursion", "[server][contract]") {
  common_world w;
  auto future = with_lock(
      w.lock,
      [&](lease& outer) -> asio::awaitable<int> {
        acquire_options again;
        again.owner = outer.owner();
        co_return co_await with_lock(
            w.lock, again,
            [&](lease& inner) -> asio::awaitable<int> { co_return co_await w.lock.async_hold_count(inner.owner()); },
            asio::use_awaitable);
      },
      asio::use_future);
  CHECK(value_of(std::move(future)) == 2);
  CHECK_FALSE(w.lock.is_locked());
}
