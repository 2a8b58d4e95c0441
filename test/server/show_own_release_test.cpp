// { auto a = k.acquire(); } { auto b = k.acquire(); } never finds its own lock busy.
#include <latchkey/latchkey.hpp>
#include <support/catch.hpp>
#include <support/run_coro.hpp>
#include <support/worlds.hpp>

#include <boost/asio/use_awaitable.hpp>

#include <chrono>

using namespace latchkey;
using namespace latchkey::test;

namespace {

constexpr int rounds = 2'000;
const acquire_options one_attempt{.wait = 0ms};

}  // namespace

TEST_CASE("a thread never finds its own lock busy after a lease went out of scope", "[server][show]") {
  common_world w;
  int busy = 0;
  for (int i = 0; i < rounds; ++i) {
    {
      auto const a = w.lock.acquire(one_attempt);
      busy += !a;
    }
    {
      auto const b = w.lock.acquire(one_attempt);
      busy += !b;
    }
  }
  CHECK(busy == 0);
}

TEST_CASE("a thread never finds its own lock busy with another lock in between", "[server][show]") {
  common_world w;
  auto const other = w.own.get_lock(new_name());
  int busy = 0;
  for (int i = 0; i < rounds; ++i) {
    {
      auto const a = w.lock.acquire(one_attempt);
      busy += !a;
    }
    {
      auto const c = other.acquire(one_attempt);
      busy += !c;
    }
    {
      auto const b = w.lock.acquire(one_attempt);
      busy += !b;
    }
  }
  CHECK(busy == 0);
}

TEST_CASE("one owner never finds its own lock busy after a lease went out of scope", "[server][show]") {
  common_world w;
  acquire_options mine = one_attempt;
  mine.owner = owner::make();
  int busy = 0;
  for (int i = 0; i < rounds; ++i) {
    auto const a = w.lock.acquire(mine);
    busy += !a;
  }
  CHECK(busy == 0);
}

TEST_CASE("a coroutine never finds its own lock busy after a lease went out of scope", "[server][show]") {
  asio::io_context io;  // outlives the thread of the client that tells it of ends
  common_world w;
  bool const on_its_own_thread = GENERATE(true, false);
  client here(io, common_server().uri(), steady_config());
  client const& used = on_its_own_thread ? w.own : here;
  auto const lock = used.get_lock(w.name);
  auto const other = used.get_lock(new_name());
  int busy = 0;
  run_coro(
      io,
      [](distributed_lock one, distributed_lock two, int& count) -> asio::awaitable<void> {
        for (int i = 0; i < rounds; ++i) {
          {
            auto const a = co_await one.async_acquire(one_attempt, asio::use_awaitable);
            count += !a;
          }
          {
            auto const b = co_await one.async_acquire(one_attempt, asio::use_awaitable);
            count += !b;
          }
          if (i % 2 == 0) {
            auto const c = co_await two.async_acquire(one_attempt, asio::use_awaitable);
            count += !c;
          }
        }
      }(lock, other, busy),
      4 * patience);
  CHECK(busy == 0);
}
