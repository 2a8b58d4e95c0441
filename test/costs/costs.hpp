#pragma once

#include <latchkey/config.hpp>
#include <support/configs.hpp>

#include <malloc.h>
#include <sys/resource.h>

#include <algorithm>
#include <limits>

namespace latchkey::test {

// Nothing happens by itself, and nobody looks for an answer again and again: every call has its exact price.
inline config exact_config() {
  auto settings = steady_config();
  settings.ping_interval = 0ms;
  settings.busy_poll = std::chrono::microseconds(0);
  return settings;
}

// Bytes that are allocated now, with what malloc adds to each piece.
inline double allocated_bytes() {
  auto const now = ::mallinfo2();
  return static_cast<double>(now.uordblks + now.hblkhd);
}

// How often a thread of this process went to sleep by itself.
inline double sleeps() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  return static_cast<double>(used.ru_nvcsw);
}

// What one of so many turns adds to a count, in the calmest of a few runs: a timer may come in between, or a connection
// that a busy machine let wait too long.
template <class Count, class Turn>
double of_one(int turns, Count const& count, Turn const& turn) {
  double least = std::numeric_limits<double>::infinity();
  for (int run = 0; run < 3; ++run) {
    auto const before = count();
    for (int i = 0; i < turns; ++i) turn();
    least = std::min(least, static_cast<double>(count() - before) / turns);
  }
  return least;
}

}  // namespace latchkey::test
