#include <base/clock.hpp>
#include <engine/wake_flag.hpp>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>

namespace latchkey::detail {

namespace {

static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t));

constexpr nanoseconds longest_nap = std::chrono::seconds(1);

timespec monotonic_after(nanoseconds length) {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  auto const end =
      std::chrono::seconds(now.tv_sec) + nanoseconds(now.tv_nsec) + std::min(length, longest_sleep(longest_nap));
  auto const whole = std::chrono::floor<std::chrono::seconds>(end);
  return {static_cast<time_t>(whole.count()), static_cast<long>((end - whole).count())};
}

void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t seen, timespec const* end) {
  ::syscall(SYS_futex, &word, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, seen, end, nullptr, FUTEX_BITSET_MATCH_ANY);
}

}  // namespace

void wake_flag::set() noexcept {
  // After the exchange the waiter may be gone; waking an address that nobody waits at does nothing.
  if (state_.exchange(done, std::memory_order_acq_rel) == awaited)
    ::syscall(SYS_futex, &state_, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1, nullptr, nullptr, 0);
}

bool wake_flag::wait_until(instant end) noexcept {
  if (is_set()) return true;
  for (;;) {
    std::uint32_t seen = idle;
    if (!state_.compare_exchange_strong(seen, awaited, std::memory_order_acq_rel) && seen == done) return true;
    if (end == never) {
      futex_wait(state_, awaited, nullptr);
      continue;
    }
    instant const now = boot_now();
    if (now >= end) return is_set();
    timespec const until = monotonic_after(end - now);
    futex_wait(state_, awaited, &until);
  }
}

}  // namespace latchkey::detail
