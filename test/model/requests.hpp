// Requests of records: sending, turning into something else while unsent, being given up.
#pragma once

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
  bool const slept = w.place == TOLD_BUSY && !w.what && s.timer == 1 && !s.dirty;
  leave(x);
  w.marks &= u8(~(ONCE | LATE | SAW_BUSY));
  if (is_try(w)) take_back(x);
  if (!was_head) return;
  if (!o.told_passes || !slept || !head_idle() || s.view != ON) return new_head();
  s.w[s.queue[0]].place = TOLD_BUSY;
  end_once_calls(true);
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

// What the client makes of an answer.

// The try of x found somebody else.
inline void model::busy(int x) {
  owner_state& w = s.w[x];
  if (w.place == UNTRIED && (w.marks & ALONE) && o.check_self)
    violation("SELF-BUSY: a client alone found its own lock busy");
  w.marks &= u8(~ALONE);
  if (!(w.marks & ONCE)) {
    w.place = TOLD_BUSY;
    end_once_calls(true);
    return sleep_or_retry();
  }
  end_once(x, true);
  bool const proves = !in_doubt() || !o.resolved_proof;
  if (proves) end_once_calls(false);
  if (proves && head_idle() && !(s.w[s.queue[0]].marks & LATE)) {  // it was there when the try was sent: told, too
    s.w[s.queue[0]].place = TOLD_BUSY;
    return sleep_or_retry();
  }
  new_head();
}

inline void model::granted(int x, int target, int lease, int age) {
  owner_state& w = s.w[x];
  int const left = lease - (o.from_send ? age : 0), holds = live(w);
  w.marks &= u8(~ALONE);
  bool const abandoned = w.flags & ABANDONED, fix = w.flags & FIX, queued = w.place != IDLE;
  bool const unwanted = abandoned || left <= 0 || (target > 1 && holds != target - 1);
  bool const heard = s.dirty && o.dirty_passes;
  finish(w);
  if (o.grant_ends && target == 1 && (!unwanted || o.abandoned_ends))  // whoever else believed to hold it has lost it
    for (int z = 0; z < o.owners; ++z) {
      owner_state& other = s.w[z];
      if (z == x || !live(other)) continue;
      end_all(other);
      if (!other.what)
        give_back(z);
      else if (other.where != OUTBOX)
        other.flags |= FIX;
      else if (other.what == ACQUIRE && other.target > 1 && o.unsent_lapse)
        unsent_lapsed(z);
      else if (other.what != ACQUIRE)
        other.target = 0;
    }
  bool const was_head = queued && s.queue[0] == x;
  if (queued) leave(x);
  w.marks &= u8(~(ONCE | LATE | SAW_BUSY));
  if (unwanted) {
    bool const gives = !abandoned || o.abandoned_give_back;
    if (gives && o.give_back_first) give_back(x);
    if (was_head) new_head();
    if (gives && !o.give_back_first) give_back(x);
    return;
  }
  int const i = holds > 2 ? 2 : holds;
  w.left[i] = u8(left);
  w.kinds &= u8(~(1 << i | 1 << (i + 3)));
  if (lease != watchdog_ticks) w.kinds |= u8(1 << i);
  if (target == 1) end_once_calls(true);
  if (fix && o.lost_give_back) give_back(x);
  if (!queued || !s.queue_n) return;
  owner_state const& head = s.w[s.queue[0]];
  if (s.view == ON && heard && !head.what && (head.place == TOLD_BUSY || !in_doubt()))
    try_head();
  else if (head.place == UNTRIED)
    untried_head(since::grant, false);
  else if (s.view == ON)
    s.timer = 1;
  else
    new_head();
}

inline void model::answer(request const& r, int lane) {
  if (r.what == KILL) return on_kill(r);
  if (r.ignored) return;
  if (r.answer == NOT_RUN)
    not_run(r, lane);
  else if (r.what == FORCE)
    s.force_pending = 0;
  else if (r.what == RENEW)
    on_renewal(r);
  else if (r.what == ACQUIRE)
    on_acquire(r);
  else if (r.what == RELEASE || r.what == GIVE_BACK)
    on_release(r);
  else if (r.what == EXTEND)
    on_extend(r);
  else
    on_hand_off(r);
  answered_something();
}

inline void model::on_kill(request const& r) {
  if (r.answer == KILL_BUSY && o.kill_answer) return kill_and_resolve(true);
  s.remembered = o.kill_all ? u8(s.remembered & ~(r.x | r.y << 2)) : 0;
  if (s.force_pending == 2 && !s.remembered) s.force_pending = 0;
}

// Nothing ran: the request is an unsent one again.
inline void model::not_run(request const& r, int lane) {
  request again = r;
  again.answer = NO_ANSWER;
  if (lane == DIRECT) {  // NOSCRIPT: the text follows at once
    s.direct_asked = again;
    if (r.what != FORCE) s.w[r.x].age = 0;
    if (r.what == HAND_OFF) s.w[r.y].age = 0;
    return;
  }
  if (r.what == RENEW || r.what == EXTEND) {
    if (r.what == EXTEND) s.w[r.x].age = 0;
    return put_shared(again);
  }
  owner_state& w = s.w[r.x];
  w.where = OUTBOX, w.age = 0;
  int const trying = r.what == HAND_OFF ? r.y : r.x;
  owner_state& tries = s.w[trying];
  if (r.what == HAND_OFF) tries.where = OUTBOX, tries.age = 0;
  if (is_try(tries) && (tries.flags & ABANDONED) && o.not_run_ends) {
    tries.flags &= u8(~ABANDONED);
    return give_up(trying);
  }
  if (r.what == ACQUIRE && w.target > 1 && o.unsent_lapse) {
    if (live(w) == 0) return unsent_lapsed(r.x);
    w.target = u8(live(w) + 1);
  }
  if (is_release(w)) w.target = u8(live(w)), w.flags &= u8(~FIX);
}

inline void model::on_renewal(request const& r) {
  owner_state& w = s.w[r.x];
  if (!w.renewing) return;
  int const age = w.renewal_age, covered = w.kinds >> 3 & 7;
  w.renewing = w.renewal_age = 0, w.kinds &= 7;
  bool any = false;
  for (int i = 0; i < 3; ++i) {
    if (!w.left[i] || !(o.generation ? covered >> i & 1 : r.answer == NOT_RENEWED || !(w.kinds >> i & 1))) continue;
    any = true;
    if (r.answer == EXTENDED && watchdog_ticks - age > w.left[i]) w.left[i] = u8(watchdog_ticks - age);
  }
  if (r.answer == EXTENDED || !any) return;
  if (o.check_told && real(s).holder == r.x + 1 && !(w.marks & FORCED))
    violation("FALSE LOSS: told lost by the answer to an old renewal");
  end_all(w);
  lapsed(r.x);
}

inline void model::on_acquire(request const& r) {
  owner_state& w = s.w[r.x];
  if (r.answer == GRANTED) return granted(r.x, r.t, r.l, w.age);
  bool const fix = (w.flags & FIX) && o.lost_give_back, abandoned = w.flags & ABANDONED;
  if (r.answer == GONE) told_lost(r.x);
  finish(w);
  if (abandoned) {
    if (fix) give_back(r.x);
  } else if (r.answer == GONE) {
    if (w.place == IDLE) join(r.x, w.marks & ONCE, false);
  } else if (fix && live(w)) {
    give_back(r.x);
  } else {
    busy(r.x);
  }
}

// What a caller of a release is told must be true.
inline void told(owner_state const& w, bool done) {
  if (!o.check_told || (w.marks & FORCED)) return;
  bool const again = w.flags & AGAIN, truth = w.flags & TRUTH;
  bool const released = done || (again && (w.until > 0 || !o.by_clock)), expired = !done && !again;
  if (released && !truth) violation("DISHONEST: says released, nothing was");
  if (expired && truth) violation("DISHONEST: says expired, was released");
}

inline void model::on_release(request const& r) {
  owner_state& w = s.w[r.x];
  if (r.what == RELEASE && r.t == 0) told(w, r.answer == DONE);
  if (r.answer == ABSENT && r.t > 0) told_lost(r.x);
  bool const fix = w.flags & FIX;
  finish(w);
  if (fix && r.answer == DONE && r.t != live(w) && o.lost_give_back) give_back(r.x);
}

inline void model::on_hand_off(request const& r) {
  owner_state &old = s.w[r.x], &next = s.w[r.y];
  if (old.flags & AWAITED) told(old, r.answer == HANDED);
  finish(old);
  bool const abandoned = next.flags & ABANDONED;
  if (r.answer == ELSEWHERE) {
    finish(next);
    if (!abandoned) busy(r.y);
  } else if (abandoned && o.hand_off && !s.streak_over && head_idle() && s.queue[0] != r.y) {  // on to the next
    finish(next);
    next.what = RELEASE;
    hand_over(r.y, s.queue[0], SHARED);
  } else {
    granted(r.y, 1, r.l, next.age);
  }
}

inline void model::on_extend(request const& r) {
  owner_state& w = s.w[r.x];
  int const i = w.extended, until = int(w.lease) - w.age;
  bool const fix = w.flags & FIX;
  if (r.answer == ABSENT) {
    told_lost(r.x);
    return finish(w);
  }
  if (!fix && i < 3 && w.left[i]) {
    if (until > w.left[i]) w.left[i] = u8(until);
    w.kinds |= u8(1 << i);
  }
  finish(w);
  if (fix && o.lost_give_back) give_back(r.x);
}
