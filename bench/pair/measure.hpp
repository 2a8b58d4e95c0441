#pragma once

#include <common/machine_state.hpp>
#include <pair/regimes.hpp>

#include <functional>
#include <vector>

namespace bench {

// Microseconds.
struct side_result {
  double p50 = 0;
  double p90 = 0;
  double cpu = 0;         // of the calling process, for one pair
  double thread_cpu = 0;  // of the calling thread alone
};

struct regime_result {
  regime const* of = nullptr;
  std::vector<side_result> bare_rounds, latchkey_rounds;
  side_result bare, latchkey;  // medians over the rounds
  double ratio_p50 = 0;        // medians of the ratios of neighbouring rounds
  double ratio_p90 = 0;
  double spread = 0;  // of ratio_p50 over the rounds: the middle half, as a part of the median
  machine_watch::share machine;

  bool kept() const { return ratio_p50 <= of->most_p50 && ratio_p90 <= of->most_p90; }
  bool unstable() const { return spread > 0.2; }
};

using pair_function = std::function<void()>;

// `ours`: the processes besides this one and those that keep the cores busy.
regime_result measure(regime const& what, int rounds, pair_function const& bare, pair_function const& latchkey,
                      std::vector<pid_t> ours);

}  // namespace bench
