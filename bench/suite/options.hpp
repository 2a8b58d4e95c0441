#pragma once

#include <common/option_values.hpp>
#include <suite/groups.hpp>

#include <string>
#include <vector>

namespace bench {

struct suite_options {
  int rounds = 25;
  std::string json;                // empty: none
  std::vector<group const*> only;  // empty: all
  bool list = false;
  bool help = false;
};

suite_options parse_options(std::vector<std::string> const& arguments);
std::string list_text();

}  // namespace bench
