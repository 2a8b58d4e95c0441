#pragma once

#include <base/instant.hpp>
#include <latchkey/export.hpp>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <ctime>

namespace latchkey::detail {

// What latchkey::testing does to the clock of its process; everywhere else it stays as it is here.
struct clock_offset {
  std::atomic<std::int64_t> ahead{0};   // nanoseconds; it only grows
  std::atomic<bool> may_change{false};  // for good: whoever sleeps until a time looks at the clock more often
};
extern LATCHKEY_EXPORT clock_offset process_clock;

inline nanoseconds clock_ahead() { return nanoseconds(process_clock.ahead.load(std::memory_order_relaxed)); }
inline bool clock_may_jump() { return process_clock.may_change.load(std::memory_order_relaxed); }

// Only floor 4 and above ask for the time.
inline instant boot_now() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return instant(std::chrono::seconds(now.tv_sec) + nanoseconds(now.tv_nsec) + clock_ahead());
}

// Since 1970; it may be set, and serves for comparisons with those of other machines alone.
inline std::chrono::microseconds time_of_day() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  auto const exact = std::chrono::seconds(now.tv_sec) + nanoseconds(now.tv_nsec) + clock_ahead();
  return std::chrono::duration_cast<std::chrono::microseconds>(exact);
}

// How long a thread sleeps before it looks at the clock again, where that does not wake it.
inline nanoseconds longest_sleep(nanoseconds usual) {
  return clock_may_jump() ? std::min<nanoseconds>(usual, std::chrono::milliseconds(1)) : usual;
}

}  // namespace latchkey::detail
