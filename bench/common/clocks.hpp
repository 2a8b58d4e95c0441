#pragma once

#include <time.h>

#include <cerrno>
#include <cstdint>

namespace bench {

// Nanoseconds.
inline std::int64_t read_clock(clockid_t which) {
  timespec now{};
  ::clock_gettime(which, &now);
  return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

inline std::int64_t now() { return read_clock(CLOCK_MONOTONIC); }

inline void sleep_until(std::int64_t moment) {
  timespec const end{static_cast<time_t>(moment / 1'000'000'000), static_cast<long>(moment % 1'000'000'000)};
  while (::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, nullptr) == EINTR) {
  }
}

}  // namespace bench
