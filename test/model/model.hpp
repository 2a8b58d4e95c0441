#pragma once
// The world as a class: a state, and what can be done to it. Bodies: server (here), engine.hpp (waiting and trying),
// requests.hpp (sending, giving up, losing), requests.hpp (what the client makes of an answer), engine.hpp (discards,
// KILL, the turn).

#include "state.hpp"

inline bool overflow = false;           // a queue of the model was full: the step is left out, and counted
inline char const* violated = nullptr;  // by the step that is being made

inline void violation(char const* what) {
  if (!violated) violated = what;
}

struct model {
  state s;
  bool gives_way = false;  // in this step: whoever has waited for longer shall try first

  explicit model(state const& from) : s(from) {}

  // --- server ---
  void publish(int at);
  int execute(int at, request const& q, bool busy_kill = false);

  // --- small things ---
  static request make(int what, int x, int target, int lease, int y = 0) {
    request r{};
    r.what = u32(what) & 15u, r.x = u32(x) & 3u, r.t = u32(target) & 3u, r.l = u32(lease) & 7u, r.y = u32(y) & 3u;
    return r;
  }
  void put_shared(request r) {
    if (s.asked_n >= lane_length)
      overflow = true;
    else
      s.asked[s.asked_n++] = r;
  }
  void end_hold(owner_state& w, int i);
  static void end_all(owner_state& w) { std::memset(w.left, 0, 3), w.kinds = 0; }
  static void finish(owner_state& w) {
    w.what = w.target = w.lease = w.flags = w.until = w.age = w.where = w.partner = w.extended = 0;
  }
  static int longest(owner_state const& w, int except = -1, bool full = o.watchdog_full);
  int lease_left(owner_state const& w) const { return w.target ? (o.longest ? longest(w) : 1) : 0; }

  // --- what is known of the name ---
  bool in_doubt(int except = -1) const;
  bool release_under_way() const;
  int unsent_release(int except) const;
  bool held_by_other(int x) const;
  bool direct_free() const {
    return o.direct && !s.direct_down && !s.direct_asked.what && !s.direct_answer.what && !s.closed;
  }
  bool may_go_direct() const { return direct_free() && !release_under_way(); }
  bool head_idle() const { return s.queue_n && !s.w[s.queue[0]].what; }
  bool parked() const { return o.parked_ignores && s.w[s.queue[0]].place == UNTRIED && in_doubt(); }

  // --- engine.hpp: the queue ---
  void join(int x, bool once, bool may_direct);
  void leave(int x);
  void new_head();
  enum class since { arrival, grant, other };
  void untried_head(since what, bool may_direct);
  void try_head(bool heard = false);
  void first_try(int x, bool may_direct);
  bool may_replace(int x) const;
  void subscribe();
  void sleep_or_retry();
  void answered_something();
  void end_once(int x, bool own_answer);
  void end_once_calls(bool all);
  void on_message();
  void on_confirmed();

  // --- requests.hpp ---
  void send(int x, int where, request r);
  void try_acquire(int x, bool may_direct);
  void hand_over(int from, int to, int where);
  void give_back(int x, int flags = 0);
  void give_up(int x);
  void take_back(int x);
  bool may_recall(int from) const;
  void recall(int from);
  void lapsed(int x);
  void unsent_lapsed(int x);
  void told_lost(int x);
  int extension(int x) const;

  // --- requests.hpp: answers ---
  void busy(int x);
  void granted(int x, int target, int lease, int age);
  void answer(request const& r, int lane);
  void on_kill(request const& r);
  void on_renewal(request const& r);
  void on_acquire(request const& r);
  void on_release(request const& r);
  void on_hand_off(request const& r);
  void on_extend(request const& r);
  void not_run(request const& r, int lane);

  // --- engine.hpp ---
  int new_slot();
  void unanswered(int x);
  void discard_direct(bool down);
  void discard_session(bool switched);
  void kill_and_resolve(bool force = false);
  void ordinary_again(int x);
  void turn();
  void close();
};

inline void model::publish(int at) {
  if (at == s.truth && s.stranger_waits) s.stranger_waits = 2;
  if (!s.subscribed || s.messages_at != at) return;
  int already = 0;
  for (int i = 0; i < s.push_n; ++i) already += s.push[i] == 'm';
  if (already < 2 && s.push_n < 4) s.push[s.push_n++] = 'm';
}

// One request runs on a server, alone and at once.
inline int model::execute(int at, request const& q, bool busy_kill) {
  server_state& lock = s.at[at];
  int const me = q.x + 1;
  bool const mine = lock.holder == me;
  owner_state& w = s.w[q.x < 3 ? q.x : 0];
  auto const set = [&](int holder, int count, int ttl) {
    lock.holder = u8(holder), lock.count = u8(holder ? count : 0), lock.ttl = u8(holder ? ttl : 0);
  };
  auto const truly_released = [&] {
    if ((w.what == RELEASE || w.what == HAND_OFF) && w.target == 0) w.flags |= TRUTH;
  };
  switch (q.what) {
    case KILL:
      if (busy_kill) return KILL_BUSY;
      for (int i = 0; i < slots; ++i)
        if ((q.x | q.y << 2) >> i & 1 && s.late_at[i] == at)
          std::memset(s.late[i], 0, sizeof s.late[i]), s.late_n[i] = 0;
      return KILLED;
    case RENEW:
      if (!mine) return NOT_RENEWED;
      set(me, lock.count, o.renew_greater && lock.ttl > watchdog_ticks ? lock.ttl : watchdog_ticks);
      return EXTENDED;
    case EXTEND:
      if (!mine) return ABSENT;
      set(me, lock.count, q.l);
      return DONE;
    case ACQUIRE:
      if (mine) {
        set(me, q.t, q.t == 1 || !o.reenter_greater || lock.ttl < q.l ? q.l : lock.ttl);
        return GRANTED;
      }
      if (q.t > 1) return GONE;
      if (lock.holder) return BUSY;
      set(me, 1, q.l), w.marks &= u8(~FORCED);
      return GRANTED;
    case RELEASE:
    case GIVE_BACK:
      if (!mine) return ABSENT;
      if (q.t == 0) {
        set(0, 0, 0);
        if (o.publish || q.what == RELEASE) publish(at);
        if (q.what == RELEASE) truly_released();
        return DONE;
      }
      if (q.what == RELEASE && w.what == RELEASE) w.flags |= TRUTH;
      set(me, q.t, q.l ? q.l : lock.ttl);
      return DONE;
    case HAND_OFF: {
      int const other = q.y + 1;
      bool const was_free = !lock.holder;
      if (!mine && lock.holder != other && !was_free) return ELSEWHERE;
      if (mine) truly_released();
      if (mine || was_free) s.w[q.y].marks &= u8(~FORCED);
      bool const had = lock.holder == other;
      set(other, 1, q.l);
      return mine ? HANDED : had ? HAD_IT : FOUND_FREE;
    }
    case FORCE:
      if (!lock.holder) return ABSENT;
      if (!s.force_pending)
        violation("LATE FORCE: a force-unlock whose caller was told connection_lost removed a holder");
      if (s.force_done) violation("LATE FORCE: one force-unlock removed two holders");
      s.force_done = 1;
      if (lock.holder < stranger) s.w[lock.holder - 1].marks |= FORCED;
      set(0, 0, 0);
      publish(at);
      return DONE;
    default: return NO_ANSWER;
  }
}

inline void model::end_hold(owner_state& w, int i) {
  for (int j = i; j < 2; ++j) {
    w.left[j] = w.left[j + 1];
    int const fixed = w.kinds >> (j + 1) & 1, covered = w.kinds >> (j + 4) & 1;
    w.kinds = u8((w.kinds & ~(1 << j | 1 << (j + 3))) | fixed << j | covered << (j + 3));
  }
  w.left[2] = 0;
  w.kinds &= u8(~(1 << 2 | 1 << 5));
}

inline int model::longest(owner_state const& w, int except, bool full) {
  int most = 0;
  for (int i = 0; i < 3; ++i) {
    if (!w.left[i] || i == except) continue;
    int const needs = !(w.kinds >> i & 1) && full ? watchdog_ticks : w.left[i];
    if (needs > most) most = needs;
  }
  return most;
}

// Something of this name is under way that nobody awaits, and its answer decides whether the lock is free.
inline bool model::in_doubt(int except) const {
  if (o.only_one) {
    int unsent = 0;
    for (int z = 0; z < o.owners; ++z) unsent += is_release(s.w[z]) && s.w[z].target == 0 && s.w[z].where == OUTBOX;
    if (unsent > 1) return true;
  }
  for (int z = 0; z < o.owners; ++z) {
    owner_state const& w = s.w[z];
    if (z == except || !w.what) continue;
    bool const sent = w.where != OUTBOX, awaited = w.flags & AWAITED;
    if (o.lapsed_in_doubt && live(w) == 0 && sent && ((w.flags & FIX) || (is_release(w) && !awaited))) return true;
    if (is_release(w) && w.target == 0 && sent && !awaited) return true;
    if (w.what == HAND_OFF && !awaited) return true;
    if (o.abandoned_in_doubt && (w.flags & ABANDONED) && sent && is_try(w) && w.target == 1) return true;
  }
  return false;
}

inline bool model::release_under_way() const {
  for (int z = 0; z < o.owners; ++z) {
    owner_state const& w = s.w[z];
    if (w.where != OUTBOX && ((is_release(w) && w.target == 0) || w.what == HAND_OFF)) return true;
  }
  return false;
}

inline int model::unsent_release(int except) const {
  for (int z = 0; z < o.owners; ++z)
    if (z != except && is_release(s.w[z]) && s.w[z].target == 0 && s.w[z].where == OUTBOX) return z;
  return -1;
}

inline bool model::held_by_other(int x) const {
  for (int z = 0; z < o.owners; ++z)
    if (z != x && live(s.w[z])) return true;
  return false;
}
