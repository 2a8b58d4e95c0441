#pragma once

#include <chrono>
#include <span>
#include <string>
#include <string_view>

namespace bench {

// One way in which an application may call, and what is asked of the library there.
struct regime {
  std::string_view name;
  std::string_view meaning;
  std::chrono::microseconds period;  // from the start of one pair to the start of the next; zero: back to back
  bool busy;                         // other processes keep every core busy
  int pairs;                         // of one side in one round
  double most_p50;                   // of the ratio latchkey / bare
  double most_p90;
};

std::span<regime const> all_regimes();
regime const* find_regime(std::string_view name);
std::string regime_names();

}  // namespace bench
