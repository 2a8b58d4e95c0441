#pragma once

#include <suite/stage.hpp>

#include <optional>
#include <string>
#include <vector>

namespace bench {

struct suite_options {
  int rounds = 25;
  std::string json;                // empty: none
  std::vector<group const*> only;  // empty: all
};

// Prints help, the list of groups, or what is wrong, and gives the exit code then.
std::optional<int> read_options(int count, char const* const* words, suite_options& out);

}  // namespace bench
