#pragma once

#include <base/instant.hpp>

#include <atomic>
#include <cstdint>

namespace latchkey::detail {

// Set once by one thread, awaited by one other. A futex, since std::atomic::wait knows no deadline and a
// condition variable costs a mutex. The waiter may destroy the flag as soon as it has seen it set.
class wake_flag {
 public:
  void set() noexcept;
  bool is_set() const noexcept { return state_.load(std::memory_order_acquire) == done; }

  // True: set. False: the time is over. `end` is of the boot clock, the sleep of the monotonic one, which stands still
  // while the machine is suspended: it sleeps in slices of a second, and looks at the boot clock after each.
  bool wait_until(instant end) noexcept;
  void wait() noexcept { wait_until(never); }

 private:
  static constexpr std::uint32_t idle = 0;
  static constexpr std::uint32_t awaited = 1;
  static constexpr std::uint32_t done = 2;

  std::atomic<std::uint32_t> state_{idle};
};

}  // namespace latchkey::detail
