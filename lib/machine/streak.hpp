#pragma once

#include <base/instant.hpp>
#include <latchkey/config.hpp>

#include <optional>
#include <utility>

namespace latchkey::detail {

// How often, and for how long, a lock has gone from caller to caller of one client before anybody else could have it:
// hand-offs, and retakes that are as much. Source: docs/safety.md, section 4.
class streak {
 public:
  // May it go on to one more? Else others, who may wait elsewhere, have their turn: it is really released.
  bool allows(local_handoff_options const& limit, instant now) const;
  bool runs() const { return length_ > 0; }
  // The last release to nobody that was sent ended one.
  bool ended() const { return ended_ > 0; }

  void count(instant now) {
    if (length_++ == 0) began_ = now;
  }
  // A release to nobody is sent.
  void end() { ended_ = std::exchange(length_, 0); }
  // That release did not run.
  void go_on() {
    if (length_ == 0) length_ = std::exchange(ended_, 0);
  }

  // Where only looks find out that the lock is free it is left to others after a streak: for as long as that lasted,
  // but no longer than `most`.
  // `first`: it began then, also if it had one hold only.
  void leave(local_handoff_options const& limit, instant now, milliseconds most, std::optional<instant> first = {});
  void leave_until(instant end) { left_until_ = end; }
  void leave_no_longer() { left_until_ = {}; }
  instant left_until() const { return left_until_; }
  // It is left to others now, and for longer than until `end`.
  bool left_beyond(instant now, instant end) const { return now < left_until_ && end <= left_until_; }

 private:
  instant began_{};
  instant left_until_{};
  int length_ = 0;
  int ended_ = 0;  // by the release that was sent last
};

}  // namespace latchkey::detail
