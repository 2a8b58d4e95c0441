#pragma once

#include <suite/stage.hpp>

#include <stdexcept>
#include <string>
#include <vector>

namespace bench {

struct bad_option : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The value of --rounds: a whole number from 1 to `most`. Throws bad_option.
int parse_rounds(std::string const& text, int most);

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
