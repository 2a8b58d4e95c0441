// What holds, waiters and hand-offs cost.
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

constexpr int many = 10'000;

struct on_one_thread {
  asio::io_context io{1};
  client own{io, common_server().uri(), exact_config()};
  ~on_one_thread() { own.close(); }
};

}  // namespace

TEST_CASE("bytes of a hold", "[costs]") {
  on_one_thread a;
  auto const prefix = new_name() + ":a lock of usual length:";
  auto const me = owner::make();
  int held = 0;
  auto const take = [&](int count) {
    for (int const end = held + count; held < end; ++held)
      a.own.get_lock(prefix + std::to_string(held)).async_lock(me, [](error_code) {});
    REQUIRE(run_until(a.io, [&] { return a.own.snapshot().held == static_cast<std::uint64_t>(held); }));
  };
  take(100);
  auto const before = allocated_bytes();
  take(many);
  auto const bytes = (allocated_bytes() - before) / many;
  std::printf("a hold: %.0f bytes\n", bytes);
  CHECK(bytes <= 1'300);
}

TEST_CASE("bytes and commands of a waiter", "[costs]") {
  client const holder(common_server().uri(), exact_config());
  auto const name = new_name();
  auto const held = holder.get_lock(name).acquire();
  on_one_thread a;
  auto const lock = a.own.get_lock(name);
  std::uint64_t waiting = 0;
  auto const wait = [&](int count) {
    waiting += static_cast<std::uint64_t>(count);
    for (int i = 0; i < count; ++i) lock.async_lock(owner::make(), [](error_code) {});
    REQUIRE(
        run_until(a.io, [&] { return a.own.snapshot().waiting == waiting && a.own.snapshot().subscriptions == 1; }));
  };
  wait(10);
  REQUIRE(run_until(a.io, [&] { return a.own.snapshot().in_doubt == 0; }));
  a.io.run_for(50ms * slowness);  // the try that follows the subscription
  auto const commands = a.own.snapshot().commands;
  auto const before = allocated_bytes();
  wait(many);
  auto const bytes = (allocated_bytes() - before) / many;
  std::printf("a waiter: %.0f bytes\n", bytes);
  // 16 of them so that no step looks through the other waiters of the name.
  CHECK(bytes <= 1'040);
  CHECK(a.own.snapshot().commands == commands);
}

TEST_CASE("hand-offs among the callers of a process: one command each, and few wake-ups", "[costs]") {
  constexpr int turns = 2'000;
  client const own(common_server().uri(), exact_config());
  auto const lock = own.get_lock(new_name());
  lock.lock();
  lock.unlock();
  auto const commands = own.snapshot().commands;
  auto const slept = sleeps();
  auto const called = system_calls();
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i)
      threads.emplace_back([&] {
        for (int k = 0; k < turns; ++k) {
          lock.lock();
          lock.unlock();
        }
      });
  }
  auto const acquisitions = 4.0 * turns;
  auto const per_turn = static_cast<double>(own.snapshot().commands - commands) / acquisitions;
  std::printf("one lock, 4 threads: %.3f commands, %.2f sleeps, %.2f system calls\n", per_turn,
              (sleeps() - slept) / acquisitions, static_cast<double>(system_calls() - called) / acquisitions);
  CHECK(per_turn <= 1.1);
  CHECK((sleeps() - slept) / acquisitions <= 3.5);
}

TEST_CASE("a new client's first lock: commands", "[costs]") {
  client const own(common_server().uri(), exact_config());
  auto const lock = own.get_lock(new_name());
  lock.lock();
  auto const commands = own.snapshot().commands;
  std::printf("a first lock: %llu commands\n", static_cast<unsigned long long>(commands));
  // The greetings of three connections, which server process it is, and the script, by its name or whole.
  CHECK(commands <= 8);
  lock.unlock();
}
