#pragma once

#include <base/instant.hpp>

#include <cstdint>

namespace latchkey::simulation {

using detail::instant;
using detail::milliseconds;
using detail::nanoseconds;

// True time, which nobody in the simulation sees: nanoseconds since it began.
using moment = std::int64_t;
inline constexpr moment endless = INT64_MAX;

constexpr moment ms(std::int64_t count) { return count * 1'000'000; }

// A clock that is set differently from others and runs at its own rate.
struct drifting_clock {
  std::int64_t start = 0;  // what it shows at the beginning, nanoseconds
  std::int64_t ppm = 0;    // how much it gains in a million

  std::int64_t at(moment t) const { return start + t + t / 1'000'000 * ppm + t % 1'000'000 * ppm / 1'000'000; }
  // The first moment at which it shows at least this.
  moment when(std::int64_t shown) const {
    if (shown <= start) return 0;
    std::int64_t const passed = shown - start;
    if (ppm == 0) return passed;
    moment t = passed - passed / (1'000'000 + ppm) * ppm;
    while (at(t) >= shown && t > 0) t -= 1'000;
    while (at(t) < shown) t += at(t) + 1'000 < shown ? (shown - at(t)) / 2 + 1 : 1;
    return t;
  }
};

}  // namespace latchkey::simulation
