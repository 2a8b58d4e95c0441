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

// What few holds have. Set before the call that asks for it starts, but for what says otherwise.
struct unusual_hold {
  std::uint64_t context = 0;                // what that call wants in its events
  std::chrono::milliseconds lock_delay{0};  // the lease on the server is so much longer than it is trusted
  nanoseconds progress_within{0};           // zero: renewed whether its work shows progress or not
  std::atomic<instant::rep> progressed{0};  // when it did last
  std::uint64_t token = 0;                  // set when it is granted
  std::shared_ptr<composite_hold> parts{};  // null: it is of one name. Set before the grant is told
};

// What a lease can see of its hold without asking anybody. The machines write it under the client's mutex;
// a lease reads it from any thread.
class hold_link {
 public:
  void show(instant until) { deadline_.store(until.time_since_epoch().count(), std::memory_order_release); }
  instant until() const {
    auto const& parts = more().parts;
    return parts ? parts->until() : instant(nanoseconds(deadline_.load(std::memory_order_acquire)));
  }
  // The work under it goes on.
  void progress(instant now) {
    if (!unusual_) return;
    if (unusual_->parts) return unusual_->parts->progress(now);
    unusual_->progressed.store(now.time_since_epoch().count(), std::memory_order_release);
  }
  bool hangs(instant now) const {
    if (!unusual_ || unusual_->progress_within.count() <= 0) return false;
    instant const last(nanoseconds(unusual_->progressed.load(std::memory_order_acquire)));
    return now - last > unusual_->progress_within;
  }

  unusual_hold const& more() const {
    static unusual_hold const& usual = *new unusual_hold;  // a lease of static storage may outlive any other
    return unusual_ ? *unusual_ : usual;
  }
  // \throws std::bad_alloc: nothing has changed.
  unusual_hold& set_more() {
    if (!unusual_) unusual_ = std::make_unique<unusual_hold>();
    return *unusual_;
  }

 private:
  std::atomic<instant::rep> deadline_{0};  // nanoseconds of the boot clock; 0: not granted
  std::unique_ptr<unusual_hold> unusual_;

 public:
  std::atomic<bool> lost{false};  // the last: who derives from it has room behind it
};

inline std::chrono::milliseconds delay_of(hold_link const* link) {
  return link ? link->more().lock_delay : std::chrono::milliseconds::zero();
}
inline std::uint64_t context_of(hold_link const* link) { return link ? link->more().context : 0; }

}  // namespace latchkey::detail
