#include <suite/stage.hpp>

#include <array>
#include <atomic>
#include <cstdio>
#include <ctime>

namespace bench {

namespace {

double since_start() {
  static timespec const start = [] {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    return now;
  }();
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec - start.tv_sec) + static_cast<double>(now.tv_nsec - start.tv_nsec) * 1e-9;
}

void print(std::string const& text) {
  int const seconds = static_cast<int>(since_start());
  std::printf("[%2d:%02d] %s\n", seconds / 60, seconds % 60, text.c_str());
  std::fflush(stdout);
}

}  // namespace

stage::stage(std::string group, int rounds, results& out)
    : group_(std::move(group)), rounds_(rounds), out_(out), server_({.tcp = true}) {
  since_start();
}

void stage::say(std::string const& text) const { print(group_ + ": " + text); }

void stage::add(row one) {
  one.group = group_;
  print("    " + text_of(one));
  out_.rows.push_back(std::move(one));
}

void stage::draw(std::string plot, std::string line, std::vector<std::pair<double, double>> points) {
  out_.curves.push_back({std::move(plot), std::move(line), std::move(points)});
}

std::string new_name(std::string_view group) {
  static std::atomic<int> count{0};
  return "bench:" + std::string(group) + ":" + std::to_string(++count);
}

latchkey::config quiet_config() {
  latchkey::config settings;
  settings.ping_interval = latchkey::milliseconds(0);
  return settings;
}

namespace {

constexpr std::array<group, 19> groups{{
    {"pair", "a free pair from a thread, in six regimes, beside bare clients that sleep or poll", run_pair},
    {"tls", "a free pair by TLS, beside a bare client with OpenSSL, and beside the same without TLS", run_tls},
    {"scope", "a lease whose release nobody waits for, on many locks and again and again on one", run_scope},
    {"coroutine", "a free pair on the caller's executor, in six regimes", run_coroutine},
    {"crowd", "many locks at once, from coroutines and from threads, beside what the server takes", run_crowd},
    {"cluster", "many locks at once on three shards of a cluster, beside one server", run_cluster},
    {"failover", "how long nobody is granted a lock while its master changes", run_failover},
    {"one_lock", "one lock that many callers of one process want", run_one_lock},
    {"turns", "local turns: inner pairs of a thread and of a coroutine, and 64 coroutines", run_turns},
    {"processes", "one lock that 2 to 16 processes want", run_processes},
    {"holds", "100,000 holds that are renewed", run_holds},
    {"waiter", "what one waiter costs", run_waiter},
    {"others", "a free pair in a client that holds and waits for much else", run_others},
    {"kinds", "the free pair of every kind, beside a bare client with the same scripts", run_kinds},
    {"allocations", "how often memory is allocated", run_allocations},
    {"first_lock", "round trips until a new client has its first lock", run_first_lock},
    {"network", "behind 0.5 and 2 ms: beside what the round trip allows, Redisson and redsync", run_network},
    {"settings", "what busy_poll, local_handoff and the batch size of the watchdog do", run_settings},
    {"sizing", "what a lock of each kind costs its server: bytes, calls, time", run_sizing},
}};

}  // namespace

std::span<group const> all_groups() { return groups; }

}  // namespace bench
