#pragma once

#include <time.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <vector>

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

inline double quantile(std::vector<double> values, double part) {
  auto const at = values.begin() + static_cast<std::ptrdiff_t>(part * static_cast<double>(values.size() - 1) + 0.5);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

inline double median(std::vector<double> const& values) { return quantile(values, 0.5); }

// Of each of the one to its neighbour of the other.
inline std::vector<double> ratios(std::vector<double> const& a, std::vector<double> const& b) {
  std::vector<double> found;
  for (std::size_t i = 0; i < a.size(); ++i) found.push_back(a[i] / b[i]);
  return found;
}

// 1: all have the same; 1 / n: one has everything.
inline double jain_index(std::vector<double> const& shares) {
  double sum = 0, squares = 0;
  for (double const one : shares) {
    sum += one;
    squares += one * one;
  }
  return squares > 0 ? sum * sum / (static_cast<double>(shares.size()) * squares) : 0;
}

}  // namespace bench
