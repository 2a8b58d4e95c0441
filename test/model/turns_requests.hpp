#pragma once
// Requests of a client of the model of local turns: sending, answers, messages, connections that are lost.

#include "turns_tenure.hpp"

struct turns_model : turns_with_hand_offs {
  // --- the confirmation, which the count follows ---

  bool confirmation_due(int c) const {
    auto const& q = clients[c];
    auto const& t = q.tenure;
    if (!t.lasts || t.vacant()) return false;
    bool const unsure = counts(c) ? t.shown != t.live() : t.shown == not_known;
    if (q.read[t.last].where && counts(c)) return false;
    return (counts(c) ? q.ask.where == nowhere : !q.beside.where) && (unsure || t.doubted || q.reenters);
  }
  void confirm(int c) {
    auto& q = of(c);
    auto const& t = q.tenure;
    int const lease = q.reenters ? asked_for(q.reenter_lease) : 0;
    if (!counts(c))
      send_renewal(c, rules.only_raises ? (q.reenters ? lease : t.watched() ? sizes.watchdog : 0) : t.longest());
    else if (rules.awaits_count || !q.has_late_room(1))
      begin_ask(q, make_it, asks_for(t), lease);
    else {
      q.late[q.late_count++] = {make_it, t.field, u8(t.live()), 0};
      q.tenure.shown = u8(t.live()), q.tenure.doubted = 0;
    }
  }
  static u8 asks_for(turns_tenure const& t) { return rules.in_its_name ? t.field : t.holder; }
  void send_renewal(int c, int lease) {
    auto& q = of(c);
    q.beside = {sent, asks_for(q.tenure), u8(lease), silent, 0, 1, 1};
  }

  void confirmed_tenure(int c, bool speaks_of_it, int count) {
    auto& t = of(c).tenure;
    bool const known = speaks_of_it || !rules.sent_later;
    t.shown = known ? u8(count) : rules.confirms ? not_known : t.shown;
    if (speaks_of_it) t.doubted = 0;
  }

  void reenter(int c, int lease, int age) {
    auto& q = of(c);
    auto const& t = q.tenure;
    if (!q.reenters || !lease || asked_for(q.reenter_lease) != lease) return;
    int const owner = q.reenters - 1, wanted = q.reenter_lease;
    if (t.holder != owner) return requeue_reentry(q);
    if (t.live() >= sizes.holds || t.trusted == 0) return;
    bool const member = q.reenter_member != 0;
    q.reenters = q.reenter_lease = q.reenter_member = 0;
    if (!is_fixed(wanted) || wanted > age) begin_hold(c, owner, wanted, member, age);
  }

  // --- sending and answers ---

  void send(int c) {
    auto& q = of(c);
    auto& t = q.tenure;
    if (q.ask.order.what == make_it) {
      q.ask.order.count = u8(t.live());
      if (!q.ask.order.lease && !rules.only_raises) q.ask.order.lease = u8(t.longest());
      q.ask.marks |= speaks;
      if (rules.in_doubt) t.shown = not_known;
    }
    if (!q.ask.has(repeated)) q.ask.first_age = 0;
    q.ask.where = sent, q.ask.age = 0;
    if (q.ask.order.what != release) return;
    bool const full = t.turns >= sizes.max_streak || t.age >= sizes.max_time;
    if (local(c) && (full || !may_go_on(q))) q.ask.marks |= after_full;
    end_run(q);
    if (!q.back.where || !rules.heard_beside) q.heard = 0;
    if (rules.unsent_only)
      end_tenure(q);
    else
      q.beside.of_tenure = 0;
    if (!rules.one_try) advance(c);
  }

  void answer(int c) {
    auto& q = of(c);
    if (q.ask.says == not_run) return refused(c);
    auto const was = q.ask;
    q.ask = {};
    switch (was.order.what) {
      case acquire: return was.says == done ? granted(c, was) : found_busy(c, was);
      case make_it: return made(c, was);
      case hand_off: return was.says == done ? granted(c, was) : found_busy(c, was);
      default: return released(c, was);
    }
  }

  void refused(int c) {
    auto& q = of(c);
    q.ask.where = outbox, q.ask.says = silent;
    if (is_for_grantee(q.ask) && q.ask.has(abandoned)) return abandon_unsent(c);
    if (q.ask.order.what == release && q.tenure.lasts) advance(c);
  }

  static bool is_for_grantee(turns_request const& ask) {
    return ask.order.what == acquire || ask.order.what == hand_off;
  }

  // Nobody waits for this acquire, and it lies in the outbox: an earlier copy may have been granted.
  void abandon_unsent(int c) {
    auto& q = of(c);
    if (q.ask.order.what == hand_off) return take_apart(q);
    int const owner = q.ask.order.by;
    bool const may_be_there = q.ask.has(repeated);
    q.ask = {};
    if (may_be_there && rules.abandoned_returns) begin_ask(q, release, owner, 0, repeated);
    advance(c);
  }

  void granted(int c, turns_request const& was) {
    auto& q = of(c);
    auto& t = q.tenure;
    bool const handed = was.order.what == hand_off;
    int const age = rules.from_send ? was.age : 0, lease = was.order.lease;
    int const owner = handed ? was.order.count : was.order.by;
    end_tenure(q);
    if (!handed) end_run(q);
    for (int o = 0; o < most_owners; ++o)
      if (q.read[o].left && o != owner) end_read(c, o);  // the server has it no more
    t.lasts = 1, t.field = u8(owner), t.last = last_of(owner), t.shown = 1, t.trusted = u8(std::max(lease - age, 0));
    t.age = (handed ? rules.began_handed : rules.began_first) ? was.first_age : was.age;
    t.member = was.has(for_member);
    t.gone = u8(server.holder != field_of(c, owner));  // since it was run: no fault of the client
    if (t.trusted == 0 || q.closed) return advance(c);
    if (was.has(abandoned)) {
      if (!rules.abandoned_returns) end_tenure(q);
      return advance(c);
    }
    int const wanted = q.want[owner];
    leave_queue(q, owner);
    q.tried = 0;
    if (is_fixed(wanted) && wanted <= age) return advance(c);
    begin_hold(c, owner, wanted, was.has(for_member), age);
  }

  void found_busy(int c, turns_request const& was) {
    auto& q = of(c);
    if (!was.has(abandoned)) q.tried = 1, q.hint = u8(was.hint + 1);
    if (!q.closed) advance(c);
  }

  void made(int c, turns_request const& was) {
    auto& q = of(c);
    auto& t = q.tenure;
    if (!t.lasts || (t.field != was.order.by && rules.in_its_name)) return advance(c);
    if (was.says == absent) return lose(c);
    int const age = rules.from_send ? was.age : 0;
    confirmed_tenure(c, was.has(speaks), was.order.count);
    if (!rules.began_fixed) t.age = u8(age), t.turns = 0;
    if (rules.only_raises) raise(t, was.order.lease, age);
    reenter(c, was.order.lease, age);
    advance(c);
  }

  void released(int c, turns_request const& was) {
    auto& q = of(c);
    if (!rules.unsent_only && q.tenure.vacant()) end_tenure(q);
    bool const waits_for_message = was.says == done && q.subscribed == 2;
    q.tried = u8(waits_for_message || (was.says == absent && !rules.absent_tries));
    if (waits_for_message) {
      q.hint = 0;
      if (was.has(after_full) && was.hint > 0) q.pause = pause_due;
    }
    advance(c);
  }

  void renewed(int c) {
    auto& q = of(c);
    auto& t = q.tenure;
    auto const was = q.beside;
    q.beside = {};
    if (!t.lasts || (!was.of_tenure && rules.this_tenure)) return;
    if (was.says == absent) return lose(c);
    int const age = rules.from_send ? was.age : 0;
    if (!rules.began_fixed) t.age = u8(age), t.turns = 0;
    if (!counts(c)) confirmed_tenure(c, was.speaks, 1);
    raise(t, was.lease, age);
    if (!counts(c)) reenter(c, was.lease, age);
    advance(c);
  }

  // --- reading ---

  void send_read(int c, int owner) {
    auto& r = of(c).read[owner];
    r.where = sent, r.age = 0;
  }
  // Nobody waits for it, and it lies in the outbox: an earlier copy may have been granted.
  void withdraw_read(int c, int owner) {
    auto& r = of(c).read[owner];
    if (r.where != outbox || r.order.what != read_acquire || !r.has(abandoned)) return;
    bool const may_be_there = r.has(repeated);
    r.where = nowhere, r.order = {}, r.marks = 0;
    if (may_be_there && rules.abandoned_returns) end_read(c, owner);
  }
  void answer_read(int c, int owner) {
    auto& q = of(c);
    auto& r = q.read[owner];
    auto const was = r;
    r.order = {}, r.where = nowhere, r.says = silent, r.marks = r.age = r.owes = 0;
    if (was.order.what == read_release) return advance(c);
    int const trusted = was.order.lease - (rules.from_send ? was.age : 0);
    bool const queued = q.want_read >> owner & 1;
    if (was.says == done) {
      if (was.owes || was.has(abandoned) || q.closed || trusted <= 0)
        end_read(c, owner);
      else
        r.left = u8(trusted), r.gone = u8(!reads(c, r.by)), leave_queue(q, owner), q.tried = 0;
    } else if (was.has(repeated) && (was.owes || was.has(abandoned))) {
      end_read(c, owner);
    } else if (!was.has(abandoned) && queued) {
      q.tried = 1, q.hint = u8(was_hint(was) + 1);
    } else if (!was.has(abandoned) && !q.closed) {  // who wrote does so no more
      enter_queue(q, owner, sizes.watchdog, false);
      q.want_read |= u8(1 << owner);
    }
    if (!q.closed || q.tenure.lasts) advance(c);
  }
  static int was_hint(turns_read const& was) { return was.order.count; }

  // --- messages ---

  void read_message(int c) {
    auto& q = of(c);
    q.message = 0;
    if (q.tenure.gone) q.tenure.gone_heard = 1;
    if (q.tenure.lasts && rules.message_doubts) doubt(q);
    look(c);
  }
  void subscribed(int c) {
    of(c).subscribed = 2;
    look(c);
  }
  // Something was heard: the head tries, now or behind what is under way.
  void look(int c) {
    auto& q = of(c);
    q.heard = 1;
    if (q.tenure.lasts || q.ask.where || q.back.where || q.pause == pausing || is_head_trying(q)) return;
    q.heard = 0;
    if (q.pause == pause_due) {
      q.pause = pausing;
      return;
    }
    q.tried = 0;
    advance(c);
  }
  void end_pause(int c) {
    auto& q = of(c);
    q.pause = no_pause;
    if (rules.pause_tries) q.tried = 0;
    advance(c);
  }
  static void doubt(turns_client& q) {
    q.tenure.doubted = 1;
    stop_speaking(q);
  }

  void send_force(int c) {
    auto& q = of(c);
    q.forcing = sent;
    if (q.tenure.lasts && rules.own_force_doubts) doubt(q);
  }
  void answer_force(int c) {
    auto& q = of(c);
    q.forcing = nowhere;
    if (q.tenure.lasts && rules.own_force_doubts) doubt(q);
    if (q.tenure.gone && q.tenure.gone_by == by_itself) q.tenure.gone_by = by_itself_known;
  }

  // --- a lost connection ---

  bool may_discard(int c) const {
    auto const& q = clients[c];
    int left = (q.ask.where == sent) + (q.beside.where == sent) + (q.forcing == sent) + (q.back.where == sent);
    bool awaited =
        q.ask.where == answered || q.beside.where == answered || q.forcing == answered || q.back.where == answered;
    for (auto const& r : q.read) left += r.where == sent, awaited = awaited || r.where == answered;
    return (left > 0 || awaited) && q.has_late_room(left);
  }
  void discard(int c) {
    auto& q = of(c);
    auto leave = [&](turns_order const& what) { q.late[q.late_count++] = what, q.kills = 1; };
    if (q.ask.where == sent) leave(q.ask.order);
    if (q.beside.where == sent) leave({renew, q.beside.by, 0, q.beside.lease});
    if (q.forcing == sent) leave({force, 0, 0, 0});
    if (q.back.where == sent) leave({release, q.back.by, 0, 0});
    if (q.back.where == sent || q.back.where == answered) q.back.where = unsettled, q.back.says = silent, q.kills = 1;
    for (auto& r : q.read) {
      if (r.where == sent) leave(r.order);
      if (r.where == sent || r.where == answered)
        r.where = unsettled, r.says = silent, r.marks |= repeated, q.kills = 1;
    }
    if (q.ask.where == sent || q.ask.where == answered) {
      q.ask.where = unsettled, q.ask.says = silent;
      q.ask.marks |= repeated;
      q.kills = 1;
    }
    q.beside = {}, q.forcing = nowhere;
    q.message = 0;
    if (q.subscribed) q.subscribed = rules.resubscribes ? 1 : 2;
    if (!rules.kill) resolve(c), q.kills = 0;
    if (!rules.kill_handed && q.ask.order.what == hand_off && q.ask.where == unsettled) settle_ask(c);
  }
  void kill(int c) {
    auto& q = of(c);
    q.kills = q.late_count = 0;
    std::fill(q.late, q.late + most_late, turns_order{});
    resolve(c);
  }
  void resolve(int c) {
    auto& q = of(c);
    for (int o = 0; o < most_owners; ++o)
      if (q.read[o].where == unsettled) {
        q.read[o].where = outbox, withdraw_read(c, o);
        if (q.read[o].has(outlives)) requeue_read(q, o);
      }
    if (q.back.where == unsettled) q.back.where = outbox;
    if (q.ask.where != unsettled) return sizes.reads ? advance(c) : void();
    settle_ask(c);
  }
  void settle_ask(int c) {
    auto& q = of(c);
    q.ask.where = outbox;
    if (is_for_grantee(q.ask) && q.ask.has(abandoned)) return abandon_unsent(c);
    if (q.ask.order.what == make_it && (!q.tenure.lasts || asks_for(q.tenure) != q.ask.order.by)) q.ask = {};
    advance(c);
  }

  void run_late(int c, int i) {
    auto& q = of(c);
    auto const what = q.late[i];
    std::copy(q.late + i + 1, q.late + most_late, q.late + i);
    q.late[most_late - 1] = {};
    --q.late_count;
    u8 ignored = 0;
    run(c, what, true, ignored);
  }
};
