#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace latchkey::tool {

// How a `run` ended, as --result tells it.
struct outcome {
  std::string what = "error";  // ran, busy, lost, error
  std::optional<int> exit;     // of the command
  std::optional<int> signal;   // that ended it
  std::chrono::milliseconds waited{0};
  std::chrono::milliseconds held{0};
  std::optional<std::uint64_t> fence;
  std::string reason;
};

// Replaces the file by one line of JSON, at once. Throws `failure` (`bad_setting`), and leaves the file as it was.
// Throws `failure` (`bad_setting`): nothing can be written there, or what is there is no file, which would be replaced.
std::string file_of_result(std::string const& path);
void write_outcome(std::string const& path, outcome const& ended);

}  // namespace latchkey::tool
