#pragma once

#include <chrono>
#include <cstdint>
#include <limits>

namespace latchkey::detail {

// A point in time of a clock that also runs while the machine sleeps (CLOCK_BOOTTIME). Machines only ever
// get such values from outside: they have no clock.
struct boot_clock {
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<boot_clock>;
  static constexpr bool is_steady = true;
};
using instant = boot_clock::time_point;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

inline constexpr instant never = instant::max();

// Saturates: a wait that does not fit the clock is for ever.
constexpr instant after(instant start, nanoseconds length) {
  if (length.count() > 0 && start.time_since_epoch() > nanoseconds::max() - length) return never;
  return start + length;
}

constexpr nanoseconds to_nanoseconds(milliseconds length) {
  constexpr auto limit = std::chrono::duration_cast<milliseconds>(nanoseconds::max());
  if (length >= limit) return nanoseconds::max();
  if (length <= -limit) return -nanoseconds::max();
  return length;
}

constexpr instant after(instant start, milliseconds length) { return after(start, to_nanoseconds(length)); }

// What is left until `end`, rounded up to a millisecond and never negative.
constexpr milliseconds left(instant now, instant end) {
  if (end <= now) return milliseconds::zero();
  if (end == never) return milliseconds::max();
  return std::chrono::ceil<milliseconds>(end - now);
}

}  // namespace latchkey::detail
