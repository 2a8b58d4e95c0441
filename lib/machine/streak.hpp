#pragma once

#include <base/instant.hpp>
#include <latchkey/config.hpp>

#include <algorithm>
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
  // None runs, the last release ended none, and the lock is not left to others.
  bool over(instant now) const { return length_ == 0 && ended_ == 0 && !left(now); }
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
  bool left(instant now) const { return now < left_until_; }
  // It is left to others now, and for longer than until `end`.
  bool left_beyond(instant now, instant end) const { return left(now) && end <= left_until_; }

 private:
  instant began_{};
  instant left_until_{};
  int length_ = 0;
  int ended_ = 0;  // by the release that was sent last
};

// Since when a client has taken a lock again whenever it was free.
class reign {
 public:
  void had(instant now) {
    if (began_ == instant{}) began_ = now;
  }
  // Somebody else has it, or shall have it.
  void end() { began_ = {}; }
  nanoseconds lasts(instant now) const { return began_ == instant{} ? nanoseconds(0) : now - began_; }

 private:
  instant began_{};
};

// All clients hear at once that a lock was released. Who had it lately lets those try first who have waited for longer:
// so they have it in turn, and do not all ask for it at the same time. Source: docs/safety.md, section 4.
class rotation {
 public:
  // The server granted it to this client.
  void had() { heard_ = 0; }
  // Somebody else was found to have it.
  void others_have_it(instant now) { contended_ = now; }
  // Others wanted it lately, as far as that shows where nobody listens.
  bool contended(instant now) const { return contended_ != instant{} && now - contended_ < lately; }
  // This client released it, and so many clients, itself included, heard of that. Of few that have it once each whoever
  // is quickest may have it next.
  void released_to(int listeners, bool after_streak) {
    listeners_ = static_cast<short>(std::min(listeners, 1'000));
    gives_way_ = after_streak || listeners >= crowd;
  }
  // It was released, here or elsewhere.
  void heard() { heard_ = static_cast<short>(std::min<int>(heard_ + 1, listeners_)); }
  // How many have waited for longer, if all who listened wait.
  int ahead() const { return gives_way_ ? std::min(listeners_ - heard_, most) : 0; }
  // Nobody else is known to want it.
  bool alone(instant now) const { return listeners_ == 0 && heard_ == 0 && !gives_way_ && !contended(now); }
  // Since this client had it others have, or could have.
  bool went_on() const { return heard_ > 1; }

 private:
  static constexpr int most = 8;  // who listens need not wait
  static constexpr milliseconds lately{1'000};
  static constexpr int crowd = 12;  // whose tries in vain take longer than the pause

  instant contended_{};
  short listeners_ = 0;  // a lock that is only held costs as little as can be
  short heard_ = 0;
  bool gives_way_ = false;
};

}  // namespace latchkey::detail
