#include <common/bare_client.hpp>
#include <common/numbers.hpp>
#include <latchkey/latchkey.hpp>
#include <suite/crowd.hpp>
#include <suite/rounds.hpp>
#include <suite/stage.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/steady_timer.hpp>

#include <atomic>
#include <barrier>
#include <chrono>
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

// A look at the clock would be a twentieth of a local turn: a timer says when it is over.
asio::awaitable<void> caller(latchkey::distributed_lock lock, bool const& over, double& count) {
  auto const me = latchkey::owner::make();
  while (!over) {
    co_await lock.async_lock(me);
    if (!over) ++count;
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
  bool over = false;
  int left = callers;
  std::exception_ptr failure;
  for (std::size_t i = 0; i < each.size(); ++i)
    asio::co_spawn(io, caller(locks[i % locks.size()], over, each[i]), [&](std::exception_ptr failed) {
      if (failed) failure = failed;
      --left;
    });
  io.restart();
  auto const began = now();
  double lasted = seconds;
  asio::steady_timer end(io, std::chrono::nanoseconds(static_cast<std::int64_t>(seconds * 1e9)));
  end.async_wait([&](latchkey::error_code const& cancelled) {
    if (cancelled) return;
    over = true;
    lasted = static_cast<double>(now() - began) * 1e-9;
  });
  while (left > 0) io.run_one();
  if (failure) std::rethrow_exception(failure);
  return sum_up(std::move(each), lasted);
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

// Many locks at once through one client, beside what the server takes over one connection.

namespace {

namespace asio = boost::asio;

constexpr int coroutines = 1'000;
constexpr int threads = 64;

std::vector<latchkey::distributed_lock> locks_of(latchkey::client const& client, int count) {
  std::vector<latchkey::distributed_lock> made;
  for (int i = 0; i < count; ++i) made.push_back(client.get_lock(new_name("crowd")));
  return made;
}

struct rates {
  std::vector<double> cap, coroutines, threads;
};

void add_crowd(stage& on, rates const& found) {
  on.add({.name = "1,000 coroutines, 1,000 locks",
          .unit = "pairs/s",
          .figure = median(found.coroutines),
          .against = "server cap",
          .reference = median(found.cap),
          .ratio = median(ratios(found.coroutines, found.cap)),
          .least = 1.5});
  on.add({.name = "1,000 coroutines, 1,000 locks",
          .unit = "pairs/s",
          .figure = median(found.coroutines),
          .against = "Redisson, 1,000 callers",
          .least = 15,
          .missing = "scripts/bench peers"});
  on.add({.name = "64 threads, 64 locks",
          .unit = "pairs/s",
          .figure = median(found.threads),
          .against = "1,000 coroutines",
          .reference = median(found.coroutines),
          .ratio = median(ratios(found.threads, found.coroutines)),
          .least = 0.45});
}

}  // namespace

void run_crowd(stage& on) {
  asio::io_context io(1);
  latchkey::client client(io, on.uri());
  latchkey::client const threaded(on.uri());
  auto const locks = locks_of(client, coroutines);
  auto const few_locks = locks_of(threaded, threads);
  pipeline cap(on.port(), new_name("cap"), coroutines);
  int const rounds = (on.rounds() + 4) / 5;
  rates found;
  auto const play = [&](double seconds) {
    found.cap.push_back(cap.pairs_per_second(seconds));
    found.coroutines.push_back(crowd_of_coroutines(io, locks, coroutines, seconds).per_second);
    found.threads.push_back(crowd_of_threads(few_locks, threads, seconds).per_second);
  };
  play(0.2);  // connects, and touches all memory
  found = {};
  for (int i = 0; i < rounds; ++i) {
    on.say("round " + std::to_string(i + 1) + " of " + std::to_string(rounds));
    play(1);
  }
  add_crowd(on, found);

  on.say("throughput by the number of clients");
  std::vector<std::pair<double, double>> by_coroutines, by_threads, by_server;
  for (int const count : {1, 4, 16, 64, 256, 1'000}) {
    by_coroutines.emplace_back(count, crowd_of_coroutines(io, locks, count, 0.5).per_second);
    by_server.emplace_back(count, median(found.cap));
    if (count <= threads) by_threads.emplace_back(count, crowd_of_threads(few_locks, count, 0.5).per_second);
  }
  on.draw("throughput", "coroutines", by_coroutines);
  on.draw("throughput", "threads", by_threads);
  on.draw("throughput", "server cap", by_server);
  client.close();
}

// One lock that many callers of one process want all the time.

void run_one_lock(stage& on) {
  namespace asio = boost::asio;
  asio::io_context io(1);
  latchkey::client client(io, on.uri());
  latchkey::client const threaded(on.uri());
  bare_client polling(on.port(), new_name("one_lock"), bare_client::waiting::polls);
  std::vector const lock{client.get_lock(new_name("one_lock"))};
  std::vector const other_lock{threaded.get_lock(new_name("one_lock"))};
  auto const poller = blocking_side("polling", [&] { polling.pair(); });
  regime const& quick = *find_regime("back-to-back");
  std::vector<double> per_trip, many_coroutines, jain, many_threads, thread_jain, trip;
  auto const play = [&](double seconds) {
    trip.push_back(median(poller.round(quick).times) / 2);
    auto const found = crowd_of_coroutines(io, lock, 64, seconds);
    many_coroutines.push_back(found.per_second);
    per_trip.push_back(found.per_second * trip.back() * 1e-6);
    jain.push_back(found.jain());
    auto const by_threads = crowd_of_threads(other_lock, 8, seconds);
    many_threads.push_back(by_threads.per_second);
    thread_jain.push_back(by_threads.jain());
  };
  play(0.2);
  per_trip.clear(), many_coroutines.clear(), jain.clear(), many_threads.clear(), thread_jain.clear(), trip.clear();
  int const rounds = (on.rounds() + 4) / 5;
  for (int i = 0; i < rounds; ++i) {
    on.say("round " + std::to_string(i + 1) + " of " + std::to_string(rounds));
    play(1);
  }
  on.add({.name = "64 coroutines: acquisitions in a polling round trip",
          .unit = "",
          .figure = median(per_trip),
          .least = 0.9});
  on.add({.name = "64 coroutines: acquisitions", .unit = "1/s", .figure = median(many_coroutines)});
  on.add({.name = "64 coroutines: Jain index", .unit = "", .figure = median(jain), .least = 0.99});
  on.add({.name = "8 threads: acquisitions",
          .unit = "1/s",
          .figure = median(many_threads),
          .against = "Redisson, 8 threads",
          .least = 25,
          .missing = "scripts/bench peers"});
  on.add({.name = "8 threads: Jain index", .unit = "", .figure = median(thread_jain), .least = 0.99});
  client.close();
}

}  // namespace bench
