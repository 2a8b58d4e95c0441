// What a free pair of acquire and release costs, in numbers that do not depend on the machine or on its load. A figure
// that rises is a fault until somebody has said why it must.
#include <costs/allocation_counter.hpp>
#include <costs/costs.hpp>
#include <costs/system_calls.hpp>
#include <latchkey/latchkey.hpp>
#include <support/catch.hpp>
#include <support/redis_server.hpp>
#include <support/run_coro.hpp>

#include <cstdio>

using namespace latchkey;
using namespace latchkey::test;

namespace {

constexpr int turns = 1'000;

struct blocking_pair {
  // On a socket of the file system a server that reads a request also wakes whoever waits for its answer.
  redis_server const server{{.tcp = true}};
  client const own{server.uri(), exact_config()};
  distributed_lock const lock = own.get_lock(new_name());

  // The first turns connect, borrow the direct lane, and fill what is kept.
  blocking_pair() {
    for (int i = 0; i < turns; ++i) (*this)();
  }
  void operator()() const {
    lock.lock();
    lock.unlock();
  }
  auto commands() const {
    return [this] { return own.snapshot().commands; };
  }
};

}  // namespace

TEST_CASE("a blocking pair: two commands, six system calls, two allocations, few sleeps", "[costs]") {
  blocking_pair const pair;
  auto const commands = of_one(turns, pair.commands(), pair);
  auto const calls = of_one(turns, system_calls, pair);
  auto const allocations = of_one(turns, allocations_of_this_thread, pair);
  auto const slept = of_one(turns, sleeps, pair);
  std::printf("blocking pair: %.2f commands, %.2f system calls, %.2f allocations, %.2f sleeps\n", commands, calls,
              allocations, slept);
  CHECK(commands == 2);
  // Look for a stray reply, send, receive, twice. A caller who lost his core for a millisecond before he receives asks
  // poll first; whatever came to every pair would add one at least.
  CHECK(calls <= 6.5);
  // Those in which hiredis writes the two commands.
  CHECK(allocations == 2);
  // The caller, twice, or less if the answer is there before it sleeps. Another thread that took part would add two.
  CHECK(slept <= 2.5);
}

TEST_CASE("a scope: two commands, the second unawaited", "[costs]") {
  client const own(common_server().uri(), exact_config());
  auto const lock = own.get_lock(new_name());
  auto const scope = [&] { static_cast<void>(lock.acquire()); };
  for (int i = 0; i < turns; ++i) scope();
  auto const commands = of_one(
      turns, [&] { return own.snapshot().commands; }, scope);
  std::printf("scope: %.2f commands\n", commands);
  CHECK(commands <= 2);
}

TEST_CASE("a coroutine pair on the caller's executor: two commands and no other thread", "[costs]") {
  asio::io_context io(1);
  client own(io, common_server().uri(), exact_config());
  auto const lock = own.get_lock(new_name());
  auto const play = [&](int count) -> asio::awaitable<void> {
    auto const me = owner::make();
    for (int i = 0; i < count; ++i) {
      co_await lock.async_lock(me);
      co_await lock.async_unlock(me);
    }
  };
  run_coro(io, play(turns));
  // One turn is a whole run of pairs.
  auto const per_pair = [&](auto const& count) { return of_one(1, count, [&] { run_coro(io, play(turns)); }) / turns; };
  auto const allocations = per_pair(allocations_of_this_thread);
  auto const calls = per_pair(system_calls);
  auto const commands = per_pair([&] { return own.snapshot().commands; });
  std::printf("coroutine pair: %.2f commands, %.2f system calls, %.2f allocations\n", commands, calls, allocations);
  CHECK(commands == 2);
  // Each command: two looks at all sockets, a send, a receive, and one that finds nothing.
  CHECK(calls <= 10.1);
  CHECK(allocations <= 40);
  own.close();
}
