#pragma once

#include <stdexcept>
#include <string>

namespace latchkey::tool {

// What the program says by its exit code; `run` else says how its command ended. As in sysexits.h where that has one.
enum exit_code : int {
  yes = 0,
  no = 1,
  wrong_usage = 64,
  unavailable = 69,
  internal_error = 70,
  no_fork = 71,
  still_busy = 75,
  refused = 76,
  no_permission = 77,
  bad_setting = 78,
  lock_lost = 79,
  not_executable = 126,
  not_found = 127,
};

// Ends the program with this code; the text, if any, goes to stderr.
class failure : public std::runtime_error {
 public:
  failure(int code, std::string const& text) : std::runtime_error(text), code_(code) {}
  int code() const noexcept { return code_; }

 private:
  int code_;
};

}  // namespace latchkey::tool
