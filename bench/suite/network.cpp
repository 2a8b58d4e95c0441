// Behind a network: what is left of what its round trip allows.
#include <common/bare_client.hpp>
#include <common/delayed_link.hpp>
#include <common/numbers.hpp>
#include <latchkey/latchkey.hpp>
#include <suite/crowd.hpp>
#include <suite/rounds.hpp>
#include <suite/stage.hpp>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>

namespace bench {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;

constexpr regime few_pairs{"network", "one pair after the other", 0us, false, 50};
constexpr int many_locks = 1'000;

// What another library did by the same link: its name, and a rate for each work.
struct peer {
  std::string name;
  std::map<std::string, double> work;
};

// One line of JSON for each that scripts/bench peers has built.
std::vector<peer> ask_peers(std::string const& uri) {
  auto const build = std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path();
  auto const command = "bench/peers/run '" + build.string() + "' " + uri;
  std::unique_ptr<FILE, int (*)(FILE*)> const said(::popen(command.c_str(), "r"), ::pclose);
  std::vector<peer> found;
  char line[500], name[100];
  while (said && std::fgets(line, sizeof line, said.get())) {
    peer one;
    double pair = 0, crowd = 0, one_lock = 0, two_clients = 0;
    if (std::sscanf(line, "%99[^:]: %lf %lf %lf %lf", name, &pair, &crowd, &one_lock, &two_clients) != 5) continue;
    found.push_back({name, {{"pair", 1e6 / pair}, {"crowd", crowd}, {"one_lock", one_lock}, {"two", two_clients}}});
  }
  return found;
}

// A rate beside what the round trip allows, and beside what others do by the same link.
class table {
 public:
  table(stage& on, std::string way, std::vector<peer> others)
      : on_(on), way_(std::move(way)), others_(std::move(others)) {}

  // `allowed`: ratio and reference. `work`: what the others call it; empty: nothing to compare with.
  void add(std::string const& name, double rate, double allowed, double ratio, std::string const& work,
           std::string note = {}) {
    auto const line = [&](std::string against) {
      return row{.name = way_ + name, .unit = "1/s", .figure = rate, .against = std::move(against)};
    };
    auto made = line("what the round trip allows");
    made.reference = allowed, made.ratio = ratio, made.least = 0.95, made.note = std::move(note);
    on_.add(std::move(made));
    if (work.empty()) return;
    for (auto const& one : others_) {
      made = line(one.name);
      made.reference = one.work.at(work);
      on_.add(std::move(made));
    }
    if (!others_.empty()) return;
    made = line("Redisson and redsync");
    made.missing = "scripts/bench peers";
    on_.add(std::move(made));
  }

 private:
  stage& on_;
  std::string const way_;
  std::vector<peer> const others_;
};

enum : std::size_t { trip_of_ping, trip_of_bare, trip_of_thread, trip_of_coroutine };

void run_pairs(stage& on, table& out, delayed_link const& link, std::string const& way) {
  bare_client ping(link.port(), std::vector<command_words>{{"PING"}});
  bare_client bare(link.port(), new_name("network"));
  latchkey::client const client(link.uri(), quiet_config());
  asio::io_context io(1);
  latchkey::client own(io, link.uri(), quiet_config());
  auto const lock = client.get_lock(new_name("network")), own_lock = own.get_lock(new_name("network"));
  std::vector<side> const sides{blocking_side("PING", [&] { ping.pair(); }),
                                blocking_side("bare client", [&] { bare.pair(); }),
                                blocking_side("latchkey",
                                              [&] {
                                                lock.lock();
                                                lock.unlock();
                                              }),
                                coroutine_side("coroutine", io, own_lock)};
  for (auto const& one : sides) one.round(few_pairs);
  auto const found = compare(few_pairs, on.rounds(), sides, on.server().pid());
  on.add({.name = way + "round trip, by PING", .unit = "us", .figure = found.sides[trip_of_ping].median_p50()});
  on.add({.name = way + "bare client, a pair",
          .unit = "us",
          .figure = found.sides[trip_of_bare].median_p50(),
          .against = "two PINGs",
          .reference = 2 * found.sides[trip_of_ping].median_p50(),
          .ratio = found.ratio_p50(trip_of_bare, trip_of_ping) / 2});
  double const allowed = 1e6 / found.sides[trip_of_bare].median_p50();
  out.add("free pair of a thread", 1e6 / found.sides[trip_of_thread].median_p50(), allowed,
          found.ratio_p50(trip_of_bare, trip_of_thread), "pair", found.note(trip_of_thread, trip_of_bare));
  out.add("free pair of a coroutine", 1e6 / found.sides[trip_of_coroutine].median_p50(), allowed,
          found.ratio_p50(trip_of_bare, trip_of_coroutine), "", found.note(trip_of_coroutine, trip_of_bare));
  own.close();
}

// Something that many callers do, and the most that they can do of it in a second. Both for so many seconds, or where a
// round trip takes so many microseconds.
struct work {
  std::string name;
  std::string of_peers;  // what the others call it
  std::function<double(double)> rate;
  std::function<double(double, double)> allowed;
  std::vector<double> rates{}, most{};
};

// Callers of one client at one lock: each hand-off is a call of its own, or none with local turns.
work turns_of_one(asio::io_context& io, std::string const& uri, std::string name, latchkey::local_handoff_options limit,
                  bool local) {
  auto settings = quiet_config();
  settings.local_turns = local;
  settings.local_handoff = limit;
  auto const client = std::make_shared<latchkey::client>(io, uri, settings);
  std::vector const lock{client->get_lock(new_name("network"))};
  return {.name = "one lock, 8 callers, " + name,
          .of_peers = "one_lock",
          .rate = [&io, client, lock](double s) { return crowd_of_coroutines(io, lock, 8, s).per_second; },
          .allowed = [](double, double trip) { return 1e6 / trip; }};
}

// Of a streak's time, and of the time until the next one, as much is left for local turns: it counts from the sending
// of the acquire, and its release is answered before the next acquire is sent.
double left_for_turns(double trip) {
  double const streak =
      static_cast<double>(std::chrono::microseconds(latchkey::local_handoff_options{}.max_time).count());
  return (streak - trip) / (streak + trip);
}

std::vector<work> works_of_one(asio::io_context& io, stage const& on, delayed_link const& link) {
  latchkey::local_handoff_options const warm{.warm_up = 0}, cold{.warm_up = 1'000'000'000}, longer{.max_time = 100ms};
  std::vector<work> made{turns_of_one(io, link.uri(), "local turns off", {}, false),
                         turns_of_one(io, link.uri(), "local turns off, max_time 100 ms", longer, false),
                         turns_of_one(io, link.uri(), "local turns on, not warmed up", cold, true),
                         turns_of_one(io, link.uri(), "local turns on", warm, true)};
  made[1].of_peers = made[2].of_peers = {};
  auto const near = turns_of_one(io, on.uri(), {}, warm, true);
  auto const bare = std::make_shared<bare_client>(on.port(), new_name("network"));
  made.back().allowed = [near, bare](double seconds, double trip) {
    double const near_trip = median(blocking_side({}, [&] { bare->pair(); }).round(few_pairs).times) / 2;
    return near.rate(seconds) * left_for_turns(trip) / left_for_turns(near_trip);
  };
  return made;
}

void run_works(stage& on, table& out, delayed_link const& link) {
  bare_client bare(link.port(), new_name("network"));
  // As many calls under way as there are coroutines.
  pipeline cap(link.port(), new_name("network"), many_locks, many_locks / 2);
  asio::io_context io(1);
  latchkey::client const one(io, link.uri(), quiet_config()), other(io, link.uri(), quiet_config());
  std::vector<latchkey::distributed_lock> locks;
  while (std::ssize(locks) < many_locks) locks.push_back(one.get_lock(new_name("network")));
  auto const name = new_name("network");
  std::vector const both{one.get_lock(name), other.get_lock(name)};
  auto all = works_of_one(io, on, link);
  all.push_back({.name = "1,000 coroutines, 1,000 locks",
                 .of_peers = "crowd",
                 .rate = [&](double s) { return crowd_of_coroutines(io, locks, many_locks, s).per_second; },
                 .allowed = [&](double s, double) { return cap.pairs_per_second(s); }});
  all.push_back({.name = "one lock, two clients",
                 .of_peers = "two",
                 .rate = [&](double s) { return crowd_of_coroutines(io, both, 2, s).per_second; },
                 // Release, message; try, grant.
                 .allowed = [](double, double trip) { return 1e6 / (2 * trip); }});
  auto const floor = blocking_side({}, [&] { bare.pair(); });
  for (auto const& each : all) each.rate(0.2);  // connects, and touches all memory
  for (int i = 0; i < (on.rounds() + 4) / 5; ++i)
    for (auto& each : all) {
      double const trip = median(floor.round(few_pairs).times) / 2;
      each.most.push_back(each.allowed(1, trip));
      each.rates.push_back(each.rate(1));
    }
  for (auto const& each : all)
    out.add(each.name, median(each.rates), median(each.most), median(ratios(each.rates, each.most)), each.of_peers);
}

}  // namespace

void run_network(stage& on) {
  for (auto const& [added, way] : {std::pair(500us, "0.5 ms: "), std::pair(2'000us, "2 ms: ")}) {
    delayed_link const link(on.port(), added);
    on.say(way + std::string("other libraries"));
    table out(on, way, ask_peers(link.uri()));
    on.say(way + std::string("pairs"));
    run_pairs(on, out, link, way);
    on.say(way + std::string("many callers"));
    run_works(on, out, link);
  }
}

}  // namespace bench
