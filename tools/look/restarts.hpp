#pragma once

#include <base/duration.hpp>
#include <base/exit_code.hpp>
#include <chrono>
#include <optional>

namespace latchkey::tool {

// How long a server that has answered may be away: it may restart, or in a cluster another may take its place. One that
// has never answered may not, unless it says that it will.
class restarts {
 public:
  // Of `limit` nothing is left: nothing is waited for.
  explicit restarts(milliseconds limit);

  // An answer came.
  void heard() { heard_ = true; }
  // A whole round went well: what comes next is another outage.
  void back();
  // For the handler of `why`, which goes on where a restart does not explain it, or takes too long. Otherwise it is
  // time for other connections.
  void away(failure const& why);

 private:
  using clock = std::chrono::steady_clock;

  clock::time_point const end_;
  milliseconds pause_;
  bool heard_ = false;
  std::optional<clock::time_point> since_;
};

}  // namespace latchkey::tool
