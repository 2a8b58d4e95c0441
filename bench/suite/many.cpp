#include <suite/many.hpp>

#include <common/clocks.hpp>
#include <common/numbers.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>

#include <atomic>
#include <barrier>
#include <exception>
#include <numeric>
#include <thread>

namespace bench {
namespace {

namespace asio = boost::asio;

struct clock_of_all {
  std::int64_t end = 0;
  bool over() const { return now() >= end; }
};

asio::awaitable<void> caller(latchkey::distributed_lock lock, clock_of_all const& clock, double& count) {
  auto const me = latchkey::owner::make();
  while (!clock.over()) {
    co_await lock.async_lock(me);
    if (!clock.over()) ++count;
    co_await lock.async_unlock(me);
  }
}

crowd_result sum_up(std::vector<double> each, double seconds) {
  double const all = std::accumulate(each.begin(), each.end(), 0.0);
  return {all / seconds, std::move(each)};
}

}  // namespace

double crowd_result::jain() const { return jain_index(each); }

crowd_result crowd_of_coroutines(asio::io_context& io, std::vector<latchkey::distributed_lock> const& locks,
                                 int callers, double seconds) {
  std::vector<double> each(static_cast<std::size_t>(callers));
  clock_of_all clock{now() + static_cast<std::int64_t>(seconds * 1e9)};
  int left = callers;
  std::exception_ptr failure;
  for (std::size_t i = 0; i < each.size(); ++i)
    asio::co_spawn(io, caller(locks[i % locks.size()], clock, each[i]), [&](std::exception_ptr failed) {
      if (failed) failure = failed;
      --left;
    });
  io.restart();
  while (left > 0) io.run_one();
  if (failure) std::rethrow_exception(failure);
  return sum_up(std::move(each), seconds);
}

crowd_result crowd_of_threads(std::vector<latchkey::distributed_lock> const& locks, int callers, double seconds) {
  std::vector<double> each(static_cast<std::size_t>(callers));
  std::vector<std::exception_ptr> failures(each.size());
  clock_of_all clock;
  // Nobody begins before everybody is there.
  std::barrier ready(callers, [&]() noexcept { clock.end = now() + static_cast<std::int64_t>(seconds * 1e9); });
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < each.size(); ++i)
      threads.emplace_back([&, i] {
        auto const lock = locks[i % locks.size()];
        double count = 0;
        ready.arrive_and_wait();
        try {
          while (!clock.over()) {
            lock.lock();
            if (!clock.over()) ++count;
            lock.unlock();
          }
        } catch (...) {
          failures[i] = std::current_exception();
        }
        each[i] = count;
      });
  }
  for (auto const& one : failures)
    if (one) std::rethrow_exception(one);
  return sum_up(std::move(each), seconds);
}

}  // namespace bench
