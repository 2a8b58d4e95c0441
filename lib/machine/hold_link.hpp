#pragma once

#include <base/instant.hpp>

#include <atomic>

namespace latchkey::detail {

// What a lease can see of its hold without asking anybody. The machines write it under the client's mutex;
// a lease reads it from any thread.
struct hold_link {
  std::atomic<instant::rep> deadline{0};  // nanoseconds of the boot clock; 0: not granted
  std::atomic<bool> lost{false};

  void show(instant until) { deadline.store(until.time_since_epoch().count(), std::memory_order_release); }
  instant until() const { return instant(nanoseconds(deadline.load(std::memory_order_acquire))); }
};

}  // namespace latchkey::detail
