// Local turns: what one costs, and how many a second there are.
#include <common/numbers.hpp>
#include <costs/allocation_counter.hpp>
#include <latchkey/latchkey.hpp>
#include <suite/crowd.hpp>
#include <suite/rounds.hpp>
#include <suite/stage.hpp>
#include <support/run_coro.hpp>

#include <functional>

namespace bench {

namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;

constexpr int pairs = 200;  // a single one is too short to be measured

latchkey::config turning() {
  auto made = quiet_config();
  made.local_turns = true;
  return made;
}

struct inner_pair {
  std::vector<double> times;  // microseconds
  double allocations = 0;     // in the last run
};

asio::awaitable<void> play(latchkey::distributed_lock lock, latchkey::owner me, int runs, inner_pair& found) {
  for (int run = 0; run < runs; ++run) {
    auto const before = latchkey::test::allocations_of_this_thread();
    auto const began = now();
    for (int i = 0; i < pairs; ++i) {
      co_await lock.async_lock(me);
      co_await lock.async_unlock(me);
    }
    found.times.push_back(static_cast<double>(now() - began) * 1e-3 / pairs);
    found.allocations = static_cast<double>(latchkey::test::allocations_of_this_thread() - before) / pairs;
  }
}

inner_pair of_coroutine(stage& on, int runs) {
  asio::io_context io;
  latchkey::client client(io, on.uri(), turning());
  auto const lock = client.get_lock(new_name("turns"));
  auto const me = latchkey::owner::make();
  inner_pair found;
  latchkey::test::run_coro(io, [&]() -> asio::awaitable<void> {
    co_await lock.async_lock(me);
    inner_pair ignored;
    co_await play(lock, me, 10, ignored);
    co_await play(lock, me, runs, found);
    co_await lock.async_unlock(me);
  }());
  client.close();
  return found;
}

std::vector<double> of_thread(stage& on, int runs) {
  latchkey::client const client(on.uri(), turning());
  auto const lock = client.get_lock(new_name("turns"));
  std::vector<double> times;
  lock.lock();
  for (int run = 0; run < runs; ++run) {
    auto const began = now();
    for (int i = 0; i < pairs; ++i) {
      lock.lock();
      lock.unlock();
    }
    times.push_back(static_cast<double>(now() - began) * 1e-3 / pairs);
  }
  lock.unlock();
  return times;
}

}  // namespace

void run_turns(stage& on) {
  int const runs = 20 * on.rounds();
  on.add({.name = "inner pair of a thread, p50", .unit = "us", .figure = median(of_thread(on, runs)), .most = 1});
  auto const inner = of_coroutine(on, runs);
  on.add({.name = "inner pair of a coroutine, p50", .unit = "us", .figure = median(inner.times), .most = 1});
  on.add({.name = "inner pair of a coroutine, allocations", .unit = "", .figure = inner.allocations, .most = 0.1});
  asio::io_context io;
  latchkey::client client(io, on.uri(), turning());
  std::vector const lock{client.get_lock(new_name("turns"))};
  std::vector<double> rates, jain;
  for (int i = 0; i <= (on.rounds() + 4) / 5; ++i) {
    auto const found = crowd_of_coroutines(io, lock, 64, i == 0 ? 0.2 : 1);
    if (i == 0) continue;
    rates.push_back(found.per_second);
    jain.push_back(found.jain());
  }
  on.add({.name = "64 coroutines: turns", .unit = "1/s", .figure = median(rates), .least = 1'000'000});
  on.add({.name = "64 coroutines: Jain index", .unit = "", .figure = median(jain), .least = 0.99});
  client.close();
}

}  // namespace bench
