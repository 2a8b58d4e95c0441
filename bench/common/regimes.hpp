#pragma once

#include <chrono>
#include <span>
#include <string_view>

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

}  // namespace bench
