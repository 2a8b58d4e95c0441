#pragma once
// Everything that may happen next: the server, the connections, the engine, time and faults.

#include "engine.hpp"
#include "requests.hpp"

struct stepper {
  state const& s;
  successors& out;
  u32& left_out;

  void emit(model& m, char const* text, bool internal, int a = 0, int b = 0, int c = 0, request r = {}) {
    char const* const what = std::exchange(violated, nullptr);
    if (std::exchange(overflow, false)) {
      ++left_out;
      return;
    }
    if (u8 const holder = real(m.s).holder; o.check_false && holder)
      for (int x = 0; x < o.owners; ++x) {
        owner_state& w = m.s.w[x];
        if ((w.marks & ONCE) && w.place != IDLE && holder != x + 1) w.marks |= SAW_BUSY;
      }
    out.push_back({m.s, {text, a, b, c, r, internal, what}});
  }

  static request take(request* list, u8& n, int most) {
    request const first = list[0];
    std::memmove(list, list + 1, sizeof(request) * std::size_t(most - 1));
    list[most - 1] = request{};
    --n;
    return first;
  }
  static void reply(model& m, request const& r) {
    if (m.s.answers_n >= lane_length)
      overflow = true;
    else
      m.s.answers[m.s.answers_n++] = r;
  }

  void server() {
    if (s.asked_n) {
      bool const kill = s.asked[0].what == KILL;
      for (int busy = 0; busy <= (kill && s.used_busy_kills < o.busy_kills); ++busy) {
        model m(s);
        request r = take(m.s.asked, m.s.asked_n, lane_length);
        r.answer = u32(m.execute(s.shared_at, r, busy)) & 15u;
        m.s.used_busy_kills += u8(busy);
        reply(m, r);
        emit(m, "server runs %r (shared) = %=", !busy, 0, 0, 0, r);
      }
      if (!kill && s.asked[0].what != FORCE && s.used_not_run < o.not_run) {
        model m(s);
        request r = take(m.s.asked, m.s.asked_n, lane_length);
        r.answer = NOT_RUN;
        ++m.s.used_not_run;
        reply(m, r);
        emit(m, "server does not run %r (shared)", false, 0, 0, 0, r);
      }
    }
    if (s.direct_asked.what) {
      model m(s);
      request r = std::exchange(m.s.direct_asked, request{});
      r.answer = u32(m.execute(s.direct_at, r)) & 15u;
      m.s.direct_answer = r;
      emit(m, "server runs %r (direct) = %=", true, 0, 0, 0, r);
    }
    if (s.direct_asked.what && s.direct_asked.what != FORCE && s.used_not_run < o.not_run) {
      model m(s);
      request r = std::exchange(m.s.direct_asked, request{});
      r.answer = NOT_RUN;
      ++m.s.used_not_run;
      m.s.direct_answer = r;
      emit(m, "server does not run %r (direct)", false, 0, 0, 0, r);
    }
    for (int i = 0; i < slots; ++i) {
      if (!s.late_n[i]) continue;
      model m(s);
      request r = take(m.s.late[i], m.s.late_n[i], slot_length);
      r.answer = u32(m.execute(s.late_at[i], r)) & 15u;
      emit(m, "LATE COPY runs: %r = %=", true, 0, 0, 0, r);
      if (o.kill) continue;
      model unread(s);
      std::memset(unread.s.late[i], 0, sizeof unread.s.late[i]), unread.s.late_n[i] = 0;
      emit(unread, "the old connection dies unread", true);
    }
  }

  void reading() {
    for (bool const waits : {false, true}) {
      if (!s.answers_n || (waits && (!o.gives_way || !s.dirty))) continue;
      model m(s);
      m.gives_way = waits;
      request const r = take(m.s.answers, m.s.answers_n, lane_length);
      m.answer(r, SHARED);
      emit(m, "client reads the answer to %r (shared): %=", true, 0, 0, 0, r);
    }
    for (bool const waits : {false, true}) {
      if (!s.direct_answer.what || (waits && (!o.gives_way || !s.dirty))) continue;
      model m(s);
      m.gives_way = waits;
      request const r = std::exchange(m.s.direct_answer, request{});
      m.answer(r, DIRECT);
      emit(m, "caller reads the answer to %r (direct): %=", !o.stall, 0, 0, 0, r);
    }
    if (s.old_answer.what) {
      model m(s);
      request const r = std::exchange(m.s.old_answer, request{});
      u8 const where = m.s.w[r.x].where;
      if (where != NOWHERE && where != DIRECT) m.answer(r, DIRECT);
      emit(m, "caller reads the answer of the older session to %r: %=", true, 0, 0, 0, r);
    }
  }

  void engine() {
    model m(s);
    m.kill_and_resolve();
    if (std::memcmp(&m.s, &s, sizeof s) != 0) emit(m, "engine: KILL, or what waited for it is ordinary again", true);
    bool unsent = false;
    for (int x = 0; x < o.owners; ++x) unsent |= s.w[x].where == OUTBOX;
    if (!unsent || s.session_down) return;
    bool handed = false;
    for (int x = 0; o.hand_off && !s.streak_over && s.queue_n && x < o.owners; ++x) {
      owner_state const& w = s.w[x];
      if (w.where != OUTBOX || !is_release(w) || w.target || x == s.queue[0]) continue;
      model hand(s);
      hand.recall(x);
      if (!hand.head_idle() || (o.only_one && s.w[s.queue[0]].place == UNTRIED && hand.in_doubt())) continue;
      handed = true;
      hand.hand_over(x, s.queue[0], SHARED);
      hand.turn();
      emit(hand, "engine's turn: the unsent release of %x goes as a hand-off to %y", true, x, s.queue[0]);
    }
    if (handed && !o.plain) return;
    model plain(s);
    plain.turn();
    emit(plain, "engine's turn: sends the outbox", true);
  }

  void messages() {
    if (s.sub_n && !s.session_down) {
      model m(s);
      u8 const what = s.sub_queue[0];
      m.s.sub_queue[0] = s.sub_queue[1], m.s.sub_queue[1] = s.sub_queue[2], m.s.sub_queue[2] = 0;
      --m.s.sub_n;
      m.s.subscribed = what == 'S';
      if (m.s.push_n < 4)
        m.s.push[m.s.push_n++] = what;
      else
        overflow = true;
      emit(m, what == 'S' ? "server: SUBSCRIBE" : "server: UNSUBSCRIBE", !o.no_sub);
    }
    for (bool const waits : {false, true}) {
      if (!s.push_n || (waits && (!o.gives_way || s.push[0] != 'm'))) continue;
      model m(s);
      m.gives_way = waits;
      u8 const what = s.push[0];
      for (int i = 0; i < 3; ++i) m.s.push[i] = s.push[i + 1];
      m.s.push[3] = 0, --m.s.push_n;
      if (what == 'm') m.on_message();
      if (what == 'S') m.on_confirmed();
      emit(m,
           waits         ? "client reads a message, and lets others first"
           : what == 'm' ? "client reads a message"
           : what == 'S' ? "client reads: subscribed"
                         : "client reads: unsubscribed",
           true);
    }
    bool trying = false, leaving = false;
    for (int x = 0; x < o.owners; ++x) trying |= s.w[x].what == ACQUIRE;
    for (int i = 0; i < s.push_n; ++i) leaving |= s.push[i] == 'U';
    for (int i = 0; i < s.sub_n; ++i) leaving |= s.sub_queue[i] == 'U';
    if (!s.queue_n && s.view == ON && !trying && s.sub_n < 2 && !leaving) {
      model m(s);
      m.s.view = OFF, m.s.sub_queue[m.s.sub_n++] = 'U';
      emit(m, "client unsubscribes", false);
    }
    if (s.used_losses < o.message_losses && s.view) {
      model m(s);
      ++m.s.used_losses;
      m.s.subscribed = m.s.sub_n = m.s.push_n = m.s.view = 0;
      std::memset(m.s.sub_queue, 0, 3), std::memset(m.s.push, 0, 4);
      if (s.queue_n && o.resubscribe) m.s.view = ASKED, m.s.sub_queue[0] = 'S', m.s.sub_n = 1;
      if (s.queue_n && !o.resubscribe) m.s.view = ON, m.s.subscribed = 1;  // as if nothing had been missed
      emit(m, "message connection lost", false);
    }
  }

  void timers() {
    if (s.timer == 2 && o.gives_way == 1) {
      model m(s);
      m.s.timer = 0;
      if (m.head_idle() && !m.parked())
        m.try_head();
      else
        m.s.dirty = 1;
      emit(m, "the pause is over", true);
    }
    // The hint stands for an end of the hold that nobody publishes; it never covers up for a lost message.
    bool const due = s.expired || (o.no_sub && s.view != ON);
    if (s.timer && due && model(s).head_idle() && (s.view == ON || o.hint_always)) {
      model m(s);
      m.try_head();
      emit(m, "hint timer", true);
    }
  }

  void time() {
    bool any = s.at[0].holder || s.at[1].holder;
    for (int x = 0; x < o.owners; ++x) any |= live(s.w[x]) || s.w[x].until;
    if (o.ticks && any) {
      model m(s);
      bool ended = false;
      for (server_state& lock : m.s.at)
        if (lock.holder && --lock.ttl == 0) lock = server_state{}, ended = true;
      if (ended) vanished(m);
      for (int x = 0; x < o.owners; ++x) {
        owner_state& w = m.s.w[x];
        if (w.what && (w.where == DIRECT || w.where == SHARED) && w.age < long_ticks) ++w.age;
        if (w.renewing && w.renewal_age < long_ticks) ++w.renewal_age;
        if (w.until) --w.until;
        bool lost = false;
        for (int i = 2; i >= 0; --i) {
          if (!w.left[i] || --w.left[i]) continue;
          lost = true;
          drop_hold(m, x, i);
        }
        if (lost) m.lapsed(x);
      }
      emit(m, ended ? "time passes (lock expires)" : "time passes", false);
    }
    if (s.used_expire < o.expire && s.at[0].holder) {
      model m(s);
      ++m.s.used_expire;
      if (s.at[0].holder < stranger) m.s.w[s.at[0].holder - 1].marks |= FORCED;
      m.s.at[0] = server_state{};
      vanished(m);
      emit(m, "hold vanishes silently", false);
    }
  }

  static void vanished(model& m) {
    m.s.expired = 1;
    if (m.s.stranger_waits) m.s.stranger_waits = 2;  // its own hint
  }

  static void drop_hold(model& m, int x, int i) {
    owner_state& w = m.s.w[x];
    if (w.what == EXTEND && w.extended == i)
      w.extended = 3;
    else if (w.what == EXTEND && w.extended > i && w.extended < 3)
      --w.extended;
    w.left[i] = 1;
    m.end_hold(w, i);
  }

  void faults() {
    bool const lent = s.direct_asked.what || s.direct_answer.what;
    bool room = s.slots_used < slots;
    for (int i = 0; i < slots; ++i) room |= !(s.remembered >> i & 1) && !s.late_n[i];
    if (o.lane_timer && room && lent) {
      model m(s);
      m.discard_direct(true);
      emit(m, "the engine's timer takes the lane back", true);
    }
    if (s.used_timeouts < o.timeouts && lent) {
      model m(s);
      ++m.s.used_timeouts;
      m.discard_direct(true);
      emit(m, "direct lane times out", false);
      if (s.used_lane_switches < o.lane_switches) {
        model k(s);
        ++k.s.used_timeouts, ++k.s.used_lane_switches;
        k.discard_direct(false);
        if (!o.peer) k.s.direct_at = 1, k.s.at[1] = server_state{};
        emit(k, "direct lane times out and reconnects; the name now means another server", false);
      }
    }
    if (s.session_down) {
      model m(s);
      m.s.session_down = 0;
      m.kill_and_resolve(true);
      emit(m, "session is up again", true);
    }
    if (s.direct_down && !s.session_down) {
      model m(s);
      m.s.direct_down = 0;
      if (o.session) m.s.direct_at = s.shared_at;
      emit(m, "direct lane is up again", false);
    }
    if (s.used_discards >= o.discards || s.session_down) return;
    bool busy = s.asked_n || s.answers_n || lent, held = false;
    for (int x = 0; x < o.owners; ++x) busy |= s.w[x].what != NOTHING, held |= live(s.w[x]) > 0;
    for (int switched = 0; switched < 2; ++switched) {
      if (switched ? s.used_switches >= o.switches || !(busy || held) : !busy) continue;
      model m(s);
      ++m.s.used_discards;
      m.s.used_switches += u8(switched);
      m.discard_session(switched);
      emit(m, switched ? "session discarded; the name now means another server" : "session discarded", false);
    }
  }

  // --- users.hpp ---
  void users();
  void calls(int x);
  void ends(int x);
  void rest();
};
