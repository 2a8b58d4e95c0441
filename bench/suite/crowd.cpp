// Many locks at once through one client, beside what the server takes over one connection.
#include <common/numbers.hpp>
#include <common/pipeline.hpp>
#include <suite/groups.hpp>
#include <suite/many.hpp>

#include <latchkey/latchkey.hpp>

namespace bench {
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

void add_rows(stage& on, rates const& found) {
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
          .least = 0.7});
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
  add_rows(on, found);

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

}  // namespace bench
