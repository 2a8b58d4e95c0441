#pragma once

#include <pair/regimes.hpp>

#include <stdexcept>
#include <string>
#include <vector>

namespace bench {

struct options {
  int rounds = 25;
  std::string json;                 // empty: none
  std::vector<regime const*> only;  // empty: all
  bool help = false;
};

struct bad_option : std::runtime_error {
  using std::runtime_error::runtime_error;
};

options parse_options(std::vector<std::string> const& arguments);
std::string help_text();

}  // namespace bench
