#pragma once

#include "statistics.hpp"

#include <chrono>
#include <cstdint>
#include <string>

namespace demo {

/// `width` characters, of which done / all are filled.
std::string bar(std::int64_t done, std::int64_t all, std::size_t width);

/// Shows how far the demo is: a bar that moves on a terminal, a line now and then elsewhere.
class progress {
 public:
  progress(bool terminal, std::size_t rows) : terminal_(terminal), rows_(rows) {}

  void begin(row const& shown);
  void update(std::int64_t done, std::int64_t all);
  void end(row_result const& result);
  /// Removes a bar that is half done.
  void clear();

 private:
  using clock = std::chrono::steady_clock;
  std::string head() const;

  bool terminal_;
  std::size_t rows_;
  std::size_t number_ = 0;
  std::string label_;
  clock::time_point begun_{};
  clock::time_point next_line_{};
};

}  // namespace demo
