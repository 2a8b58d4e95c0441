#pragma once
// Requests of records: sending, turning into something else while unsent, being given up.

#include "model.hpp"

// What goes by the shared lane waits in the outbox until the turn.
inline void model::send(int x, int where, request r) {
  owner_state& w = s.w[x];
  w.age = 0;
  bool const pairs = r.what == HAND_OFF;
  if (where == SHARED && (r.what == ACQUIRE || pairs || r.what == RELEASE || r.what == GIVE_BACK)) {
    w.where = OUTBOX;
    if (pairs) s.w[r.y].where = OUTBOX;
    return;
  }
  if (where == SHARED && s.session_down) {
    w.where = IN_DOUBT;
    return;
  }
  w.where = u8(where);
  if (pairs) s.w[r.y].where = u8(where);
  if ((r.what == ACQUIRE && r.t == 1) || pairs)
    for (int z = 0; z < o.owners; ++z) s.w[z].marks &= u8(~LATE);
  if (where == DIRECT)
    s.direct_asked = r;
  else
    put_shared(r);
}

inline void model::try_acquire(int x, bool may_direct) {
  owner_state& w = s.w[x];
  int const holds = live(w);
  int const leaving = holds == 0 && o.take_along ? unsent_release(x) : -1;
  if (leaving >= 0 && s.streak_over) {
    if (o.streak_dirty) s.dirty = 1;
    return;
  }
  if (leaving >= 0) return hand_over(leaving, x, may_direct && direct_free() ? DIRECT : SHARED);
  w.what = ACQUIRE, w.target = u8(holds + 1), w.lease = w.wants, w.flags = 0;
  send(x, may_direct && may_go_direct() ? DIRECT : SHARED, make(ACQUIRE, x, holds + 1, w.wants));
}

// One request for both: `from` is released and `to` granted.
inline void model::hand_over(int from, int to, int where) {
  owner_state &old = s.w[from], &next = s.w[to];
  old.what = HAND_OFF, old.target = 0, old.partner = u8(to);
  next.what = GRANTEE, next.target = 1, next.lease = next.wants, next.flags = 0, next.partner = u8(from), next.age = 0;
  if (s.queue_n && s.queue[0] == to) s.timer = s.dirty = 0;
  send(from, where, make(HAND_OFF, from, 0, next.wants, to));
}

inline void model::give_back(int x, int flags) {
  owner_state& w = s.w[x];
  w.what = GIVE_BACK, w.target = u8(live(w)), w.flags = u8(flags), w.until = w.age = 0, w.where = OUTBOX;
}

// The caller goes.
inline void model::give_up(int x) {
  owner_state& w = s.w[x];
  bool const was_head = s.queue_n && s.queue[0] == x;
  leave(x);
  w.marks &= u8(~(ONCE | LATE | SAW_BUSY));
  if (is_try(w)) take_back(x);
  if (was_head) new_head();
}

// Nobody waits for this try any more. What was never sent goes; else its effect is given back.
inline void model::take_back(int x) {
  owner_state& w = s.w[x];
  if (!o.remove_unsent || w.where != OUTBOX) {
    w.flags |= ABANDONED;
    return;
  }
  bool const again = w.flags & AGAIN;
  int const flags = again ? AGAIN : 0;
  if (o.removed_dirty) s.dirty = s.expired = 1;  // what made it try was not followed by a try
  if (w.what == ACQUIRE) {
    bool const owes =
        ((w.flags & REPLACED) && o.restore) || ((w.flags & (FIX | OWES)) && o.owes) || (again && o.sent_before);
    finish(w);
    if (owes) give_back(x, flags);
    return;
  }
  owner_state& old = s.w[w.partner];
  finish(w);
  if (again && o.sent_before) give_back(x, flags);
  if (o.restore)
    old.what = RELEASE, old.target = 0, old.partner = 0;
  else
    finish(old);
}

// The head's try would leave right behind the release of `from`, and win over everybody else.
inline bool model::may_recall(int from) const {
  if (!o.recall || !s.queue_n || s.queue[0] == from) return false;
  owner_state const& w = s.w[s.queue[0]];
  return w.what == ACQUIRE && w.where == OUTBOX && w.target == 1 && !(w.flags & (AGAIN | REPLACED | FIX | OWES));
}

inline void model::recall(int from) {
  if (!may_recall(from)) return;
  finish(s.w[s.queue[0]]);
  s.dirty = 1;
}

// A hold of x ended, and not by a release of its own.
inline void model::lapsed(int x) {
  owner_state& w = s.w[x];
  if (!w.what) {
    if (o.lost_give_back) give_back(x);
  } else if (w.where != OUTBOX) {
    w.flags |= FIX;
  } else if (w.what == ACQUIRE) {
    if (!o.unsent_lapse || w.target == 1) return;
    if (live(w) == 0) return unsent_lapsed(x);
    w.target = u8(live(w) + 1), w.flags |= OWES;
  } else if (o.late_target || (w.what == RELEASE && w.target > 0)) {
    w.target = u8(live(w));
  }
}

// An unsent re-entry has nothing left to re-enter: the server is told first, then it queues like everybody.
inline void model::unsent_lapsed(int x) {
  owner_state& w = s.w[x];
  bool const once = w.marks & ONCE;
  int const flags = w.flags & AGAIN ? AGAIN : 0;
  finish(w);
  give_back(x, flags);
  join(x, once, false);
}

// The server said that the holds of x are gone.
inline void model::told_lost(int x) {
  owner_state& w = s.w[x];
  if (live(w) == 0) return;
  if (o.check_told && real(s).holder == x + 1 && !(w.marks & FORCED))
    violation("FALSE LOSS: told lost although the server has it");
  end_all(w);
}

inline int model::extension(int x) const {
  owner_state const& w = s.w[x];
  int const others = o.extend_others ? longest(w, w.extended, o.extend_watchdog) : 0;
  return others > w.lease ? others : w.lease;
}
