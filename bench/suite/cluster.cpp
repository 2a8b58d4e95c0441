#include <common/numbers.hpp>
#include <latchkey/latchkey.hpp>
#include <suite/crowd.hpp>
#include <suite/stage.hpp>
#include <support/cluster_set.hpp>

#include <chrono>

namespace bench {

// Many locks at once through one client, whose names are on three servers, beside the same on one.

namespace {

namespace asio = boost::asio;

constexpr std::size_t callers = 1'000;

// A client and what its pairs cost.
class user {
 public:
  // Each name begins with one of these.
  explicit user(std::string const& uri, std::vector<std::string> const& tags = {""})
      : client_(io_, uri, quiet_config()) {
    for (std::size_t i = 0; i < callers; ++i)
      locks_.push_back(client_.get_lock(tags[i % tags.size()] + new_name("cluster")));
  }
  ~user() { client_.close(); }

  void play(double seconds) {
    auto const commands = client_.snapshot().commands;
    auto const cpu = read_clock(CLOCK_PROCESS_CPUTIME_ID);
    double const rate = crowd_of_coroutines(io_, locks_, callers, seconds).per_second;
    double const pairs = rate * seconds;
    rates.push_back(rate);
    commands_each.push_back(static_cast<double>(client_.snapshot().commands - commands) / pairs);
    cpu_each.push_back(static_cast<double>(read_clock(CLOCK_PROCESS_CPUTIME_ID) - cpu) * 1e-3 / pairs);
  }
  void forget() { rates.clear(), commands_each.clear(), cpu_each.clear(); }

  std::vector<double> rates, commands_each, cpu_each;

 private:
  asio::io_context io_{1};
  latchkey::client client_;
  std::vector<latchkey::distributed_lock> locks_;
};

}  // namespace

void run_cluster(stage& on) {
  latchkey::test::cluster_set servers(std::chrono::minutes(1));
  for (std::size_t replica = 3; replica < 6; ++replica) servers.node(replica).kill();  // the cores are for the others
  std::vector<std::string> tags;
  for (std::size_t shard = 0; shard < 3; ++shard) tags.push_back("{" + servers.name_on(shard) + "}");
  user shards(servers.uri()), tagged(servers.uri(), tags), one(on.uri());
  auto const play = [&](double seconds) {
    for (user* each : {&shards, &tagged, &one}) each->play(seconds);
  };
  play(0.3);  // connects, and touches all memory
  for (user* each : {&shards, &tagged, &one}) each->forget();
  int const rounds = (on.rounds() + 4) / 5;
  for (int i = 0; i < rounds; ++i) {
    on.say("round " + std::to_string(i + 1) + " of " + std::to_string(rounds));
    play(1);
  }
  auto const add = [&](std::string name, std::string unit, std::vector<double> const& here,
                       std::vector<double> const& there, std::optional<double> least, std::optional<double> most) {
    on.add({.name = "1,000 coroutines, 1,000 locks, three shards" + name,
            .unit = std::move(unit),
            .figure = median(here),
            .against = "one server",
            .reference = median(there),
            .ratio = median(ratios(here, there)),
            .most = most,
            .least = least});
  };
  for (auto const& [here, tag] : {std::pair{&shards, ""}, {&tagged, ", three hash tags"}}) {
    std::string const name = tag;
    add(name, "pairs/s", here->rates, one.rates, 1.2, {});
    add(name + ": CPU of the client, each", "us", here->cpu_each, one.cpu_each, {}, {});
    add(name + ": commands, each", "", here->commands_each, one.commands_each, {}, 1.05);
  }
}

}  // namespace bench
