#pragma once

#include <base/instant.hpp>

#include <atomic>
#include <mutex>

namespace latchkey::detail {

// A timerfd of CLOCK_BOOTTIME: Asio's own timers stand still while the machine sleeps. It is armed anew only for
// an earlier instant, never for a later one and never disarmed, so that taking and releasing a lock costs no
// system call. Knows nothing of Asio: whoever has a loop watches a copy of the descriptor.
class boot_timer {
 public:
  // \throws lock_error connect_failed: no descriptor is left.
  boot_timer();
  ~boot_timer();
  boot_timer(boot_timer const&) = delete;
  boot_timer& operator=(boot_timer const&) = delete;

  // Makes the descriptor readable at `at`, or earlier. Any thread.
  void arm(instant at) noexcept;

  // The clock has jumped: what is armed is armed anew. Any thread.
  void clock_jumped() noexcept;

  // The descriptor was readable: from now on arm() means what it says. To be called before the time is used.
  void fired() noexcept;

  // Another descriptor of the same timer, owned by the caller; -1 if there is none left.
  int duplicate() const noexcept;

 private:
  void set(instant at) noexcept;

  int fd_;
  std::mutex mutex_;
  std::atomic<instant> armed_{never};
};

}  // namespace latchkey::detail
