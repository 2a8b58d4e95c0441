// Connections that are discarded, what they leave, and the engine's turn.
#pragma once

#include "model.hpp"

inline int model::new_slot() {
  if (s.slots_used < slots) return s.slots_used++;
  for (int i = 0; i < slots; ++i)
    if (!(s.remembered >> i & 1) && s.late_n[i] == 0) return i;
  overflow = true;
  return 0;
}

inline void model::unanswered(int x) {
  s.w[x].where = IN_DOUBT;
  s.w[x].flags |= AGAIN;
}

// The direct lane is given up: its bytes stay in a slot, its request is to be resolved.
inline void model::discard_direct(bool down) {
  request const q = s.direct_asked.what ? s.direct_asked : s.direct_answer;
  s.direct_down = down;
  if (!q.what) return;
  int const i = new_slot();
  if (s.direct_asked.what) s.late[i][0] = s.direct_asked, s.late_n[i] = 1;
  s.late_at[i] = s.direct_at;
  s.remembered |= u8(1 << i);
  if (!o.old_reply && s.direct_answer.what) s.old_answer = s.direct_answer;
  s.direct_asked = s.direct_answer = request{};
  if (q.what == FORCE) {
    if (o.force_once)
      s.force_pending = o.force_kill ? 2 : 0;
    else
      put_shared(q);
    return;
  }
  for (int x = 0; x < o.owners; ++x)
    if (s.w[x].where == DIRECT) unanswered(x);
}

// The shared connection is given up, and the others of its session with it.
inline void model::discard_session(bool switched) {
  if (s.asked_n || s.answers_n) {
    int const i = new_slot();
    s.remembered |= u8(1 << i);
    s.late_at[i] = s.shared_at;
    if (s.asked_n > slot_length) overflow = true;
    s.late_n[i] = s.asked_n < slot_length ? s.asked_n : u8(slot_length);
    std::memcpy(s.late[i], s.asked, s.late_n[i] * sizeof(request));
  }
  bool forced = false;
  for (int j = 0; j < s.asked_n; ++j) forced |= s.asked[j].what == FORCE;
  for (int j = 0; j < s.answers_n; ++j) forced |= s.answers[j].what == FORCE;
  std::memset(s.asked, 0, sizeof s.asked), std::memset(s.answers, 0, sizeof s.answers);
  s.asked_n = s.answers_n = 0;
  if (forced && o.force_once) s.force_pending = o.force_kill ? 2 : 0;
  if (forced && !o.force_once) put_shared(make(FORCE, 0, 0, 0));
  for (int x = 0; x < o.owners; ++x) {
    owner_state& w = s.w[x];
    if (w.where == SHARED) unanswered(x);
    w.renewing = w.renewal_age = 0, w.kinds &= 7;
  }
  if (o.session && o.direct) discard_direct(true);
  if (o.session_messages || !switched) {
    s.subscribed = s.sub_n = s.push_n = 0;
    std::memset(s.sub_queue, 0, 3), std::memset(s.push, 0, 4);
    bool const anew = s.queue_n && s.view;
    s.view = anew ? ASKED : OFF;
    if (anew) s.sub_queue[0] = 'S', s.sub_n = 1;
    s.messages_at = switched ? 1 : s.shared_at;
  }
  if (switched) {
    if (!o.data_loss)
      s.at[1] = s.at[0];
    else
      s.expired = 1;
    s.shared_at = s.truth = 1;
    if (o.session) {
      s.direct_at = 1, s.at[0] = server_state{};
      for (int i = 0; i < slots; ++i) std::memset(s.late[i], 0, sizeof s.late[i]), s.late_n[i] = 0;
      s.remembered = 0;
    }
  }
  if (o.down)
    s.session_down = 1;
  else
    kill_and_resolve(true);
}

// KILL goes alone. When all were answered, what waited is ordinary again.
inline void model::kill_and_resolve(bool force) {
  if (s.session_down) return;
  int outstanding = 0;
  auto const look = [&](request const* list, int n) {
    for (int i = 0; i < n; ++i)
      if (list[i].what == KILL) outstanding |= list[i].x | list[i].y << 2;
  };
  look(s.asked, s.asked_n), look(s.answers, s.answers_n);
  bool waits = false;
  for (int x = 0; x < o.owners; ++x) waits |= s.w[x].where == IN_DOUBT;
  if (s.force_pending == 2 && s.remembered && o.kill_now && !outstanding) force = true;
  if (!waits && !(force && s.remembered && o.kill_now)) return;
  if (o.kill && s.remembered) {
    int which = s.remembered & ~outstanding;
    if (!o.kill_all && which) {
      int newest = slots - 1;
      while (!(which >> newest & 1)) --newest;
      which = 1 << newest;
    }
    if (which) put_shared(make(KILL, which & 3, 0, 0, which >> 2));
    if (o.kill_wait) return;
  }
  for (int x = 0; x < o.owners; ++x)  // pairs first: both records change
    if (s.w[x].where == IN_DOUBT && s.w[x].what == HAND_OFF) ordinary_again(x);
  for (int x = 0; x < o.owners; ++x)
    if (s.w[x].where == IN_DOUBT && s.w[x].what != GRANTEE) ordinary_again(x);
}

// Its late copies can no longer run.
inline void model::ordinary_again(int x) {
  owner_state& w = s.w[x];
  if (w.what == EXTEND) return send(x, SHARED, make(EXTEND, x, 0, extension(x)));
  w.where = OUTBOX;
  if (w.what == HAND_OFF) {
    owner_state& next = s.w[w.partner];
    next.where = OUTBOX;
    if (!(next.flags & ABANDONED) || !o.grantee_left) return;
    w.what = RELEASE, w.target = w.partner = 0;
    next.what = GIVE_BACK, next.target = next.flags = next.partner = 0;
    return;
  }
  if (w.what == ACQUIRE && (w.flags & ABANDONED) && o.abandoned_instead)
    w.what = GIVE_BACK, w.target = u8(live(w)), w.flags &= u8(~FIX);
  if (is_release(w)) w.target = u8(live(w)), w.flags &= u8(~FIX);
  if (w.what != ACQUIRE || w.target == 1 || !o.unsent_lapse) return;
  if (live(w) == 0)
    unsent_lapsed(x);
  else
    w.target = u8(live(w) + 1);
}

// Everything in the outbox leaves: give-backs, releases, hand-offs, then acquires.
inline void model::turn() {
  for (int x = 0; x < o.owners; ++x)
    if (is_release(s.w[x]) && s.w[x].target == 0 && s.w[x].where == OUTBOX) recall(x);
  for (int what : {GIVE_BACK, RELEASE, HAND_OFF, ACQUIRE})
    for (int x = 0; x < o.owners; ++x) {
      owner_state& w = s.w[x];
      if (w.where != OUTBOX || w.what != what) continue;
      w.where = SHARED, w.age = 0;
      if (what == GIVE_BACK) w.target = u8(live(w));
      if (is_release(w) && w.target == 0) s.streak_over = 0;
      if (what == ACQUIRE && o.unsent_lapse) w.target = u8(live(w) + 1);
      if (what == HAND_OFF || (what == ACQUIRE && w.target == 1))
        for (int z = 0; z < o.owners; ++z) s.w[z].marks &= u8(~LATE);
      if (what == HAND_OFF) {
        owner_state& next = s.w[w.partner];
        next.where = SHARED, next.age = 0;
        put_shared(make(HAND_OFF, x, 0, next.lease, w.partner));
      } else {
        put_shared(make(what, x, w.target, what == ACQUIRE ? w.lease : lease_left(w)));
      }
    }
}

inline void model::close() {
  s.closed = 1;
  while (s.queue_n) leave(s.queue[0]);
  s.timer = 0;
  for (int x = 0; x < o.owners; ++x) {
    owner_state& w = s.w[x];
    give_up(x);
    if (live(w)) {
      end_all(w);
      if (!w.what)
        give_back(x);
      else if (w.where != OUTBOX || w.what == ACQUIRE)
        w.flags |= FIX;
      else
        w.target = 0;
    }
    if (is_release(w) && w.where == OUTBOX) w.target = 0;
    if ((w.what == RELEASE || w.what == ACQUIRE) && w.target > (w.what == ACQUIRE)) w.flags |= FIX;
  }
  discard_direct(true);
  kill_and_resolve();
}

// Waiting: one queue per name; only its head talks to the server.

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

inline void model::try_head(bool heard) {
  if (heard && gives_way) {
    s.timer = 2;
    return;
  }
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
  if (gives_way && !replaces) {
    s.timer = 2;
    return;
  }
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
      try_head(true);
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
  bool const heard = s.dirty && s.timer != 2 && (s.view == ON || !s.timer) && o.answer_retries;
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
    try_head(true);
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
