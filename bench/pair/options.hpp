#pragma once

#include <common/option_values.hpp>
#include <pair/regimes.hpp>

#include <string>
#include <vector>

namespace bench {

struct options {
  int rounds = 25;
  std::string json;                 // empty: none
  std::vector<regime const*> only;  // empty: all
  bool help = false;
};

options parse_options(std::vector<std::string> const& arguments);
std::string help_text();

}  // namespace bench
