#pragma once

#include <stdexcept>
#include <string>

namespace bench {

struct bad_option : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The value of --rounds: a whole number from 1 to `most`. Throws bad_option.
int parse_rounds(std::string const& text, int most);

}  // namespace bench
