#pragma once

#include <machine/hold_link.hpp>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

namespace latchkey::detail {

// How long the hold of one member may be trusted, by clocks that may run apart.
class joint_trust {
 public:
  joint_trust(hold_link const& shown, nanoseconds drift) : shown_(&shown), drift_(drift) {}

  bool lost() const { return shown_->lost.load(std::memory_order_acquire); }
  // A time that has passed if it is lost.
  instant until() const {
    if (lost()) return {};
    instant const end = shown_->until();
    return end == instant{} ? end : end - drift_;
  }

  // Until the answer it may count on the lease that it had, or already on the new one: the longer drift is taken off.
  void extending(nanoseconds drift) {
    ++extensions_;
    drift_ = std::max(drift_, drift);
  }
  void extended(nanoseconds drift, bool done) {
    if (--extensions_ == 0 && done) drift_ = drift;
  }

 private:
  hold_link const* shown_;
  nanoseconds drift_;
  int extensions_ = 0;  // under way
};

// One hold of a joint lock, counted: a quorum of its parts must last. A part points to something with a joint_trust
// named `trust`.
template <class Part>
class joint_count {
 public:
  explicit joint_count(std::size_t quorum) : quorum_(quorum) {}

  // False: too few of them are left.
  bool begin(std::vector<Part> parts) {
    ends_.reserve(parts.size());
    parts_ = std::move(parts);
    return !too_few();
  }
  // False: it is over.
  bool add(Part late) {
    if (!held()) return false;
    ends_.reserve(parts_.size() + 1);
    parts_.push_back(std::move(late));
    return true;
  }

  bool held() const { return !lost_ && !ended_; }
  bool lost() const { return lost_; }
  bool ended() const { return ended_; }
  std::vector<Part> const& parts() const { return parts_; }

  // Are more members lost than it can spare?
  bool too_few() const {
    auto const left = std::count_if(parts_.begin(), parts_.end(), [](Part const& part) { return !part->trust.lost(); });
    return static_cast<std::size_t>(left) < quorum_;
  }
  // As long as a quorum of its members lasts.
  instant until() const {
    if (!held()) return {};
    // Each is asked once, since it may change meanwhile; and a lease asks from where nothing may be thrown.
    ends_.clear();
    for (Part const& part : parts_) ends_.push_back(part->trust.until());
    if (ends_.size() < quorum_) return {};
    auto const last = ends_.begin() + static_cast<std::ptrdiff_t>(quorum_ - 1);
    std::nth_element(ends_.begin(), last, ends_.end(), std::greater<>());
    return *last;
  }

  void lose() { lost_ = true; }
  void end() { ended_ = true; }
  // What is to be given back.
  std::vector<Part> take() { return std::exchange(parts_, {}); }

 private:
  std::size_t const quorum_;
  std::vector<Part> parts_;
  mutable std::vector<instant> ends_;  // room for one of each
  bool lost_ = false;
  bool ended_ = false;
};

}  // namespace latchkey::detail
