// One lock that many callers of one process want all the time.
#include <common/bare_client.hpp>
#include <common/numbers.hpp>
#include <suite/groups.hpp>
#include <suite/many.hpp>
#include <suite/rounds.hpp>

#include <latchkey/latchkey.hpp>

namespace bench {

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
  std::vector<double> per_trip, coroutines, jain, threads, thread_jain, trip;
  auto const play = [&](double seconds) {
    trip.push_back(median(poller.round(quick).times) / 2);
    auto const found = crowd_of_coroutines(io, lock, 64, seconds);
    coroutines.push_back(found.per_second);
    per_trip.push_back(found.per_second * trip.back() * 1e-6);
    jain.push_back(found.jain());
    auto const by_threads = crowd_of_threads(other_lock, 8, seconds);
    threads.push_back(by_threads.per_second);
    thread_jain.push_back(by_threads.jain());
  };
  play(0.2);
  per_trip.clear(), coroutines.clear(), jain.clear(), threads.clear(), thread_jain.clear(), trip.clear();
  int const rounds = (on.rounds() + 4) / 5;
  for (int i = 0; i < rounds; ++i) {
    on.say("round " + std::to_string(i + 1) + " of " + std::to_string(rounds));
    play(1);
  }
  on.add({.name = "64 coroutines: acquisitions in a polling round trip",
          .unit = "",
          .figure = median(per_trip),
          .least = 0.9});
  on.add({.name = "64 coroutines: acquisitions", .unit = "1/s", .figure = median(coroutines)});
  on.add({.name = "64 coroutines: Jain index", .unit = "", .figure = median(jain), .least = 0.99});
  on.add({.name = "8 threads: acquisitions",
          .unit = "1/s",
          .figure = median(threads),
          .against = "Redisson, 8 threads",
          .least = 10,
          .missing = "scripts/bench peers"});
  on.add({.name = "8 threads: Jain index", .unit = "", .figure = median(thread_jain), .least = 0.99});
  client.close();
}

}  // namespace bench
