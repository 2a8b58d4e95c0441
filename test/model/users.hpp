// What users do: they call, give up, release, extend, force, close; and a stranger.
#pragma once

#include "state.hpp"
#include "steps.hpp"

inline void stepper::users() {
  if (!s.closed)
    for (int x = 0; x < o.owners; ++x) {
      calls(x);
      ends(x);
    }
  rest();
}

// Nobody else may have it, or asks for it.
inline bool comes_alone(model& m, int x) {
  bool alone = !o.stranger;
  for (int z = 0; z < o.owners; ++z) {
    if (z == x) continue;
    owner_state& c = m.s.w[z];
    if (live(c) || c.place || (is_try(c) && !(c.flags & ABANDONED)) ||
        ((c.what == RELEASE || c.what == HAND_OFF) && (c.flags & AWAITED)))
      alone = false;
    c.marks &= u8(~ALONE);
  }
  return alone;
}

inline void stepper::calls(int x) {
  owner_state const& w = s.w[x];
  int const n = live(w);
  bool const idle = !w.what && !w.place;
  // Its own dropped release is under way: the call waits for that in the queue.
  bool const own_release = is_release(w) && w.target == 0 && !(w.flags & AWAITED) && !w.place && n == 0;
  bool const may = (idle || own_release) && n < o.holds && (!o.life || w.lives < o.life);
  for (int kind = 0; may && kind < 3; ++kind) {
    if (!(o.leases >> kind & 1)) continue;
    for (int once = 0; once < 2; ++once)
      for (unsigned how = 0; how < 4; ++how) {
        bool const blocking = (how & 1) != 0, leaves = (how & 2) != 0;  // leaves: to others, who came too late for long
        if ((o.calls == 0 && !once) || (o.calls == 1 && once) || (!blocking && !(o.async && o.direct)) ||
            (leaves && (!o.gives_way || once || n)))
          continue;
        model m(s);
        m.gives_way = leaves;
        owner_state& me = m.s.w[x];
        me.wants = kind == 0 ? watchdog_ticks : kind == 1 ? long_ticks : short_ticks;
        if (o.life) ++me.lives;
        bool const alone = comes_alone(m, x) && n == 0;
        me.marks &= u8(~(ALONE | ONCE | LATE | SAW_BUSY));
        if (alone) me.marks |= ALONE;
        if (n == 0) {
          m.join(x, once, blocking);
        } else if (o.reenter_at_once || !s.queue_n) {
          m.try_acquire(x, blocking);
          if (once && o.reenter_at_once) me.marks |= ONCE;
        } else {
          me.place = TOLD_BUSY, m.s.queue[m.s.queue_n++] = u8(x);
        }
        bool const told = !me.what && !me.place;
        emit(m,
             n                    ? once ? "%x re-enters once%l" : "%x re-enters%l"
             : told               ? "%x tries once: false, a waiter is ahead"
             : me.what == GRANTEE ? "%x tries: takes the unsent release as a hand-off%l"
             : me.what != ACQUIRE ? once ? "%x tries once: queues" : "%x tries: queues"
             : once               ? "%x tries once%l"
                                  : "%x tries%l",
             false, x, 0, me.where);
      }
  }
  bool const waits = w.place || is_try(w);
  if (s.used_cancels < o.cancels && waits && !(is_try(w) && (w.flags & ABANDONED))) {
    model m(s);
    ++m.s.used_cancels;
    m.give_up(x);
    emit(m,
         !is_try(w)          ? "%x gives up waiting"
         : w.where == OUTBOX ? "%x gives up with its request in the outbox"
                             : "%x gives up with its request under way",
         false, x);
  }
}

inline void stepper::ends(int x) {
  owner_state const& w = s.w[x];
  int const n = live(w);
  if (o.drop_busy && o.drop && n && w.what && w.what != GRANTEE)
    for (int i = 0; i < n; ++i) {
      model m(s);
      drop_hold(m, x, i);
      m.lapsed(x);
      emit(m, "%x drops a lease while its request is under way", false, x);
    }
  bool const idle = !w.what && !w.place;
  for (int i = 0; idle && i < n; ++i) {
    auto const release = [&](model& m, int flags) {
      owner_state& me = m.s.w[x];
      u8 const until = me.left[i];
      m.end_hold(me, i);
      me.what = RELEASE, me.target = u8(n - 1), me.flags = u8(flags), me.until = until, me.where = OUTBOX;
    };
    if (o.awaited) {
      model m(s);
      release(m, AWAITED);
      emit(m, "%x releases (in the outbox)", false, x);
      bool const last = n == 1 && o.hand_off && !s.streak_over;
      bool const to_head = last && s.queue_n && s.queue[0] != x && (m.head_idle() || m.may_recall(x));
      for (int where = DIRECT; to_head && where <= SHARED; ++where) {
        model hand(s);
        if (where == DIRECT ? !hand.direct_free() : !m.head_idle()) continue;
        hand.recall(x);
        release(hand, AWAITED);
        hand.hand_over(x, s.queue[0], where);
        emit(hand, "%x releases: hand-off to %y%l", false, x, s.queue[0], hand.s.w[x].where);
      }
      if ((!to_head || o.plain) && model(s).may_go_direct()) {
        model direct(s);
        release(direct, AWAITED);
        if (n == 1) direct.recall(x), direct.s.streak_over = 0;
        direct.send(x, DIRECT, model::make(RELEASE, x, n - 1, direct.lease_left(direct.s.w[x])));
        emit(direct, "%x releases on the direct lane", false, x);
      }
    }
    if (o.drop) {
      model m(s);
      release(m, 0);
      emit(m, "%x drops its lease", false, x);
    }
    for (int lease = short_ticks; lease <= long_ticks && s.used_extends < o.extends; lease += 2) {
      model m(s);
      owner_state& me = m.s.w[x];
      ++m.s.used_extends;
      bool const direct = m.may_go_direct();
      me.what = EXTEND, me.lease = u8(lease), me.extended = u8(i), me.flags = 0;
      int const ttl = m.extension(x);
      if (o.extend_falls && me.left[i] > lease) me.left[i] = u8(lease);
      me.kinds |= u8(1 << i);
      if (o.extend_generation) me.kinds &= u8(~(1 << (i + 3)));
      m.send(x, direct ? DIRECT : SHARED, model::make(EXTEND, x, 0, ttl));
      emit(m, "%x extends hold %b to %c", false, x, i, lease);
    }
  }
  if (!o.renew || w.renewing || s.session_down) return;
  int covered = 0;
  for (int i = 0; i < 3; ++i)
    if (w.left[i] && !(w.kinds >> i & 1)) covered |= 1 << i;
  if (!covered) return;
  model m(s);
  owner_state& me = m.s.w[x];
  me.renewing = 1, me.renewal_age = 0, me.kinds = u8((me.kinds & 7) | covered << 3);
  m.put_shared(model::make(RENEW, x, 0, watchdog_ticks));
  emit(m, "watchdog renews %x", false, x);
}

inline void stepper::rest() {
  if (s.used_forces < o.forces && !s.force_pending && !s.closed)
    for (int where = DIRECT; where <= SHARED; ++where) {
      model m(s);
      if (where == DIRECT ? !m.may_go_direct() : s.session_down) continue;
      ++m.s.used_forces;
      m.s.force_pending = 1;
      if (where == DIRECT)
        m.s.direct_asked = model::make(FORCE, 0, 0, 0);
      else
        m.put_shared(model::make(FORCE, 0, 0, 0));
      emit(m, "somebody calls force_unlock%l", false, 0, 0, where);
    }
  if (o.closes && !s.closed) {
    model m(s);
    m.close();
    emit(m, "close()", false);
  }
  if (s.used_streaks < o.streaks && !s.streak_over) {
    model m(s);
    ++m.s.used_streaks, m.s.streak_over = 1;
    emit(m, "the streak of hand-offs is over", false);
  }
  if (!o.stranger) return;
  if (s.stranger_waits == 2) {
    model woken(s);
    woken.s.stranger_waits = real(s).holder != 0;
    if (!real(s).holder) woken.s.at[s.truth] = {stranger, 1, watchdog_ticks};
    emit(woken, real(s).holder ? "B wakes: busy" : "B wakes and acquires", true);
  } else if (o.stranger == 2 && !s.stranger_waits && real(s).holder && real(s).holder != stranger) {
    model waits(s);
    waits.s.stranger_waits = 1;
    emit(waits, "B finds it busy, and waits", false);
  }
  model m(s);
  server_state& lock = m.s.at[s.truth];
  if (!lock.holder && !s.stranger_waits) {
    lock = {stranger, 1, watchdog_ticks};
    emit(m, "B acquires", false);
  } else if (lock.holder == stranger) {
    lock = server_state{};
    m.publish(s.truth);
    emit(m, "B releases", false);
  }
}

inline void all_steps(state const& s, successors& out, u32& left_out) {
  stepper next{s, out, left_out};
  next.server();
  next.reading();
  next.engine();
  next.messages();
  next.timers();
  next.time();
  next.faults();
  next.users();
}

// What must be true of every state.

// Nothing is under way between client and server, and no late copy can run.
inline bool quiet(state const& s) {
  bool busy = s.asked_n || s.answers_n || s.direct_asked.what || s.direct_answer.what || s.old_answer.what || s.sub_n ||
              s.push_n;
  for (int i = 0; i < slots; ++i) busy |= s.late_n[i] > 0;
  for (int x = 0; x < o.owners; ++x) busy |= s.w[x].what != NOTHING;
  return !busy;
}

inline void check(state const& s, std::vector<std::string>& found) {
  server_state const& lock = real(s);
  int believers = 0;
  for (int x = 0; x < o.owners; ++x) {
    owner_state const& w = s.w[x];
    int most = 0;
    for (u8 left : w.left) most = left > most ? left : most;
    if (!most || (w.marks & FORCED)) continue;
    ++believers;
    if (!o.check_strong) continue;
    if (lock.holder && lock.holder != x + 1)
      found.push_back("EXCLUSION: a trusted hold, and the server granted the lock to somebody else");
    else if (!lock.holder || lock.ttl < most)
      found.push_back("FORGOTTEN: the server forgets before the owner does");
  }
  if (believers > 1) found.push_back("EXCLUSION: two owners of this client hold it");
  if (!quiet(s)) return;
  for (int x = 0; x < o.owners; ++x) {
    owner_state const& w = s.w[x];
    if (lock.holder != x + 1) continue;
    if (live(w) == 0)
      found.push_back("GHOST: the server has a hold that nobody owns, and all is quiet");
    else if (live(w) != lock.count && !(w.marks & FORCED))
      found.push_back("COUNT: belief and server count differ, and all is quiet");
  }
}

// Nothing happens by itself any more: is somebody forgotten?
inline void check_end(state const& s, std::vector<std::string>& found) {
  u8 const holder = real(s).holder;
  bool const nobody = holder == 0 || (holder < stranger && live(s.w[holder - 1]) == 0);
  for (int x = 0; x < o.owners; ++x)
    if (s.w[x].what) {
      found.push_back("STUCK: a request without anything on the way");
      return;
    }
  if (s.force_pending == 2) found.push_back("STUCK: the caller of a force-unlock never hears");
  if (s.stranger_waits == 1 && !holder) found.push_back("LOST WAKE-UP: another client waits, and nobody tells it");
  if (!s.queue_n) return;
  if (nobody)
    found.push_back(holder ? "LOST WAKE-UP: somebody waits behind a hold that nobody owns"
                           : "LOST WAKE-UP: the lock is free, somebody waits, nothing is on the way");
  else
    for (int i = 0; i < s.queue_n; ++i)
      if (holder == s.queue[i] + 1) found.push_back("SELF-DEADLOCK: a holder waits in the queue behind others");
}
