#pragma once

#include <common/machine_state.hpp>

#include <chrono>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace bench {

// One way in which an application may call.
struct regime {
  std::string_view name;
  std::string_view meaning;
  std::chrono::microseconds period;  // from the start of one pair to the start of the next; zero: back to back
  bool busy;                         // other processes keep every core busy
  int pairs;                         // of one side in one round
};

std::span<regime const> all_regimes();
regime const* find_regime(std::string_view name);

// What one round of one side took, in microseconds.
struct round_times {
  std::vector<double> times;  // of each pair
  double cpu = 0;             // of this process, for one pair
};

// One of those that are compared. `round` plays one round; its pairs may come by any way.
struct side {
  std::string name;
  std::function<round_times(regime const&)> round;
};

// A round of pairs by this thread. Who is late starts the next pair at once, and no lost time is caught up with.
side blocking_side(std::string name, std::function<void()> pair);

struct side_rounds {
  std::vector<double> p50, cpu;  // of every round
  std::vector<double> all;       // every pair of every round

  double median_p50() const;
  double median_cpu() const;
  double p90() const;
  double p99() const;
};

struct comparison {
  std::vector<side_rounds> sides;
  machine_watch::share machine;

  // Medians of the ratios of neighbouring rounds.
  double ratio_p50(std::size_t a, std::size_t b) const;
  double ratio_cpu(std::size_t a, std::size_t b) const;
  double ratio_p99(std::size_t a, std::size_t b) const { return sides[a].p99() / sides[b].p99(); }
  // How much others used, and whether the ratio differs much from round to round.
  std::string note(std::size_t a, std::size_t b) const;
};

// Every side once in each round; none is always the first. `server`: its process belongs to the measurement.
comparison compare(regime const& what, int rounds, std::vector<side> const& sides, pid_t server);

// Distribution of a side, for a plot: quantile, microseconds.
std::vector<std::pair<double, double>> distribution(side_rounds const& of);

}  // namespace bench
