#pragma once

#include <base/instant.hpp>

#include <atomic>
#include <cstdint>
#include <memory>

namespace latchkey::detail {

// A hold that consists of holds of several names.
class composite_hold {
 public:
  virtual ~composite_hold() = default;
  virtual instant until() const = 0;
  // Whoever is shown it is going away.
  virtual void unlink() = 0;
  // See hold_link.
  virtual void progress(instant now) = 0;
};

// What a lease can see of its hold without asking anybody. The machines write it under the client's mutex;
// a lease reads it from any thread.
struct hold_link {
  std::atomic<instant::rep> deadline{0};  // nanoseconds of the boot clock; 0: not granted
  std::atomic<bool> lost{false};
  std::uint64_t context = 0;                // what the call that asks for it wants in its events; set before it starts
  std::chrono::milliseconds lock_delay{0};  // the lease on the server is so much longer than it is trusted
  nanoseconds progress_within{0};           // zero: renewed whether its work shows progress or not
  std::atomic<instant::rep> progressed{0};  // when it did last
  std::shared_ptr<composite_hold> parts;    // null: it is of one name. Set before the grant is told

  void show(instant until) { deadline.store(until.time_since_epoch().count(), std::memory_order_release); }
  instant until() const {
    return parts ? parts->until() : instant(nanoseconds(deadline.load(std::memory_order_acquire)));
  }
  // The work under it goes on.
  void progress(instant now) {
    if (parts) return parts->progress(now);
    progressed.store(now.time_since_epoch().count(), std::memory_order_release);
  }
  bool hangs(instant now) const {
    instant const last(nanoseconds(progressed.load(std::memory_order_acquire)));
    return progress_within.count() > 0 && now - last > progress_within;
  }
};

inline std::chrono::milliseconds delay_of(hold_link const* link) {
  return link ? link->lock_delay : std::chrono::milliseconds::zero();
}
inline std::uint64_t context_of(hold_link const* link) { return link ? link->context : 0; }

}  // namespace latchkey::detail
