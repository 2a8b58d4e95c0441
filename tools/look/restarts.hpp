#pragma once

#include <base/duration.hpp>
#include <base/exit_code.hpp>
#include <chrono>
#include <optional>

namespace latchkey::tool {

// How long whoever looks for long bears that the server is away: it may restart.
class restarts {
 public:
  // Of `limit` nothing is left: nothing is waited for.
  explicit restarts(milliseconds limit);

  void back() { since_.reset(); }
  // For the handler of `why`, which goes on where a restart does not explain it, or takes too long. Otherwise it is
  // time for other connections.
  void away(failure const& why);

 private:
  using clock = std::chrono::steady_clock;

  clock::time_point const end_;
  std::optional<clock::time_point> since_;
};

}  // namespace latchkey::tool
