#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace demo {

/// What the command line asks for.
struct options {
  std::int64_t requests = 2000;
  std::int64_t concurrency = 1000;
  std::int64_t stock = 100'000;
  std::int64_t processes = 4;
  std::int64_t think_us = 200;
  /// A recipe is cut off after this many seconds.
  std::int64_t limit_s = 10;
  /// Names of rows; empty: all of them.
  std::vector<std::string> only;
  /// Where to write the results as JSON; empty: nowhere.
  std::string json;
  bool help = false;
};

/// A command line that cannot be followed; the text says why.
struct bad_option : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Reads `--name value` and `--name=value`.
/// \throws bad_option
options parse_options(std::vector<std::string> const& arguments);

/// What `--help` prints.
std::string help_text();

}  // namespace demo
