#pragma once
// Waiting: one queue per name; only its head talks to the server.

#include "model.hpp"

// A caller who holds nothing: behind those who came before; alone, it tries at once.
inline void model::join(int x, bool once, bool may_direct) {
  owner_state& w = s.w[x];
  w.marks &= u8(~(ONCE | LATE | SAW_BUSY));
  if (once) {
    if (head_idle() && s.w[s.queue[0]].place == TOLD_BUSY) {  // a waiter stands before it
      w.marks &= u8(~ALONE);
      return;
    }
    w.marks |= ONCE;
  }
  if (s.queue_n) {
    owner_state const& head = s.w[s.queue[0]];
    if (is_try(head) && head.where != OUTBOX) w.marks |= LATE;
  }
  w.place = UNTRIED;
  s.queue[s.queue_n++] = u8(x);
  if (s.queue_n > 1) return;
  s.timer = 0;
  untried_head(since::arrival, may_direct);
}

inline void model::leave(int x) {
  int i = 0;
  while (i < s.queue_n && s.queue[i] != x) ++i;
  if (i == s.queue_n) return;
  for (; i + 1 < s.queue_n; ++i) s.queue[i] = s.queue[i + 1];
  s.queue[--s.queue_n] = 0;
  s.w[x].place = IDLE;
  if (s.queue_n == 0) s.timer = 0;
}

// The head left without being granted.
inline void model::new_head() {
  if (s.queue_n == 0) return;
  owner_state const& head = s.w[s.queue[0]];
  if (head.place == UNTRIED) return untried_head(since::other, false);
  if (head.what || s.view == ASKED) return;
  if (s.view == OFF) {
    if (!o.resolve || !in_doubt()) subscribe();
    return;
  }
  if (o.new_head)
    try_head();
  else
    s.timer = 1;
}

// Why it is the head: it found nobody waiting, the one before it was granted, or something else ended.
inline void model::untried_head(since what, bool may_direct) {
  int const x = s.queue[0];
  owner_state& w = s.w[x];
  if (w.what) {  // its own release: replaced if unsent, else its answer makes it try
    if (!may_replace(x)) return;
  } else if (o.resolve && in_doubt()) {
    return;
  }
  if (what != since::arrival && o.await_confirm && s.view == ASKED && (o.await_confirm == 1 || s.timer)) return;
  // Behind a holder of this client it listens first, or sleeps if it has listened all the time.
  bool const heard = s.view == ON && s.dirty && (what == since::grant ? o.dirty_passes : o.heard_tries);
  bool const may_sleep = what == since::arrival ? o.behind_local == 2 && !(w.marks & ONCE) && s.view != ASKED
                         : what == since::grant ? o.behind_local > 0
                                                : o.behind_local > 0 && (s.view != ON || !o.resolved_tries);
  if (may_sleep && !heard && held_by_other(x)) {
    if (w.what && o.own_parks) return;
    if (w.marks & ONCE) {
      end_once(x, false);
      return new_head();
    }
    w.place = TOLD_BUSY;
    subscribe();
    end_once_calls(true);
    return;
  }
  if (what == since::other && !o.new_head && s.view == ON) {
    w.place = TOLD_BUSY;
    s.timer = 1;
    return;
  }
  first_try(x, may_direct);
}

inline void model::try_head() {
  s.dirty = s.timer = s.expired = 0;
  try_acquire(s.queue[0], false);
}

inline bool model::may_replace(int x) const {
  owner_state const& w = s.w[x];
  return o.replace && is_release(w) && w.where == OUTBOX && w.target == 0 && !(w.flags & AWAITED) && live(w) == 0 &&
         !s.streak_over && !in_doubt(x);
}

inline void model::first_try(int x, bool may_direct) {
  owner_state& w = s.w[x];
  bool const replaces = w.what;
  s.dirty = s.timer = s.expired = 0;
  if (replaces) finish(w);
  try_acquire(x, may_direct);
  if (replaces && w.what == ACQUIRE) w.flags |= REPLACED;
}

inline void model::subscribe() {
  if (s.view == OFF) {
    s.view = ASKED;
    if (s.sub_n < 3)
      s.sub_queue[s.sub_n++] = 'S';
    else
      overflow = true;
  }
  s.timer = 1;
}

// The head was told busy.
inline void model::sleep_or_retry() {
  if (s.view == ON) {
    if (s.dirty)
      try_head();
    else
      s.timer = 1;
    return;
  }
  subscribe();
  if (!o.hint_always) s.timer = 0;
}

// After every answer: a head that waited for the name to be resolved tries.
inline void model::answered_something() {
  if (!s.queue_n) return;
  owner_state const& head = s.w[s.queue[0]];
  bool const heard = s.dirty && (s.view == ON || !s.timer) && o.answer_retries;
  if (head.place == UNTRIED) {
    if (!head.what || may_replace(s.queue[0])) untried_head(since::other, false);
  } else if (!in_doubt() && !head.what && (s.view == OFF || heard)) {
    try_head();
  }
}

// A one-shot says false.
inline void model::end_once(int x, bool own_answer) {
  owner_state& w = s.w[x];
  if ((w.marks & ALONE) && o.check_self) violation("SELF-BUSY: a client alone found its own lock busy");
  bool const waiter_ahead = s.queue_n && s.queue[0] != x && s.w[s.queue[0]].place == TOLD_BUSY;
  if (o.check_false && !own_answer && !(w.marks & SAW_BUSY) && !held_by_other(x) && !waiter_ahead)
    violation("SPURIOUS: a one-shot says false, but nobody had the lock during the call, and nobody is ahead");
  leave(x);
  w.marks &= u8(~(ONCE | LATE | SAW_BUSY | ALONE));
}

inline void model::end_once_calls(bool all) {
  for (int i = s.queue_n; i--;) {
    owner_state const& w = s.w[s.queue[i]];
    if (!(w.marks & ONCE) || w.what) continue;
    if (!all && (w.marks & LATE) && o.ticket) continue;
    end_once(s.queue[i], false);
  }
}

inline void model::on_message() {
  if (head_idle() && s.view == ON && !parked())
    try_head();
  else if (o.dirty)
    s.dirty = 1;
}

inline void model::on_confirmed() {
  s.view = ON;
  if (!head_idle() || parked()) {
    if (o.confirm_dirty) s.dirty = 1;
    return;
  }
  if (o.recheck)
    try_head();
  else
    s.timer = 1;
}
