#pragma once
// What users of the model of local turns do: lock, unlock, give up, close, and a try through another kind of the name.

#include "turns_requests.hpp"

struct turns_with_users : turns_model {
  bool in_use(int c, int owner) const {
    auto const& q = clients[c];
    return q.tenure.holder == owner || q.waits(owner) || q.reenters == owner + 1 ||
           (q.ask.where != nowhere && q.ask.order.by == owner) || grantee_of(q) == owner ||
           (q.back.where && q.back.by == owner) || (rules.field_in_use && q.tenure.lasts && q.tenure.field == owner);
  }
  // Of the hand-off under way; else none.
  static int grantee_of(turns_client const& q) { return q.ask.order.what == hand_off ? q.ask.order.count : -1; }
  bool in_use_by_other_kind(int c, int owner) const {
    return rules.other_in_use && clients[c].other.where && clients[c].other.by == owner;
  }

  bool may_call(int c, int owner) const {
    auto const& q = clients[c];
    if (q.waits(owner) || q.reenters == owner + 1 || q.calls[owner] >= sizes.life) return false;
    if (in_use_by_other_kind(c, owner)) return false;
    if (q.read[owner].any() && q.tenure.holder != owner) return false;  // he would wait for himself
    if (q.tenure.holder == owner && q.read[owner].where) return false;  // behind that
    return q.tenure.holder != owner || (q.tenure.live() < sizes.holds && !q.reenters);
  }
  void call(int c, int owner, int lease, bool member) {
    auto& q = of(c);
    auto& t = q.tenure;
    ++q.calls[owner];
    if (!rules.by_holder && t.lasts && t.field == owner && t.holder != owner && t.holder != nobody)
      return violate(field_decides);
    if (t.holder != owner) {
      enter_queue(q, owner, lease, member);
      return advance(c);
    }
    bool const here = local(c) && fits(t, lease) && !(member && rules.members_ask);
    if (!here) {
      q.reenters = u8(owner + 1), q.reenter_lease = u8(lease), q.reenter_member = member;
      stop_speaking(q);
      return;
    }
    if (member && t.gone) violate(vote);
    begin_hold(c, owner, lease, member);
  }

  // Who writes may read, too: that goes at once. Others wait in the queue.
  bool may_read(int c, int owner) const {
    auto const& q = clients[c];
    return sizes.reads > q.reads[owner] && !q.read[owner].any() && !q.waits(owner) && q.reenters != owner + 1 &&
           !(q.tenure.lasts && q.tenure.last == owner && (q.tenure.vacant() || q.ask.where != nowhere)) &&
           !(q.ask.where != nowhere && q.ask.order.what == release && q.borrower == owner + 1) &&
           !(q.ask.where != nowhere && q.ask.order.by == owner && !q.borrower);
  }
  void call_read(int c, int owner) {
    auto& q = of(c);
    ++q.reads[owner];
    if (q.tenure.holder == owner) return begin_read(c, owner);
    enter_queue(q, owner, sizes.watchdog, false);
    q.want_read |= u8(1 << owner);
    advance(c);
  }
  void read_no_longer(int c, int owner) {
    end_read(c, owner);
    advance(c);
  }

  void unlock(int c, int i) {
    of(c).tenure.end_hold(i);
    advance(c);
  }

  void give_up(int c, int owner) {
    auto& q = of(c);
    ++q.cancels;
    bool const was_head = q.queue[0] == owner;
    leave_queue(q, owner);
    if (q.ask.order.what == acquire ? q.ask.order.by == owner : grantee_of(q) == owner) withdraw(c);
    if (q.read[owner].where && q.read[owner].order.what == read_acquire) {
      q.read[owner].marks |= abandoned;
      withdraw_read(c, owner);
    }
    if (was_head) q.tried = 0;
    if (was_head && !rules.pause_stays && q.pause == pausing) q.pause = no_pause, q.tried = 1;
    advance(c);
  }
  // Nobody waits for the acquire any more.
  void withdraw(int c) {
    auto& q = of(c);
    if (q.ask.where == outbox)
      abandon_unsent(c);
    else
      q.ask.marks |= abandoned;
  }

  void close(int c) {
    auto& q = of(c);
    q.closed = 1;
    while (q.queued) leave_queue(q, q.queue[0]);
    q.reenters = q.reenter_lease = q.reenter_member = 0;
    q.pause = no_pause;
    if (is_for_grantee(q.ask)) withdraw(c);
    for (int o = 0; o < most_owners; ++o) {
      if (q.read[o].where && q.read[o].order.what == read_acquire) q.read[o].marks |= abandoned, withdraw_read(c, o);
      if (q.read[o].left) end_read(c, o);
    }
    if (q.tenure.lasts) q.tenure.holder = nobody, q.tenure.left[0] = q.tenure.left[1] = q.tenure.fixed = 0;
    advance(c);
  }

  void unsubscribe(int c) {
    auto& q = of(c);
    q.subscribed = q.message = q.heard = q.tried = q.hint = 0;
    if (q.pause == pause_due) q.pause = no_pause;
  }

  // --- the other kind: one try, one hold with the watchdog's lease, one release; nothing of it is lost ---

  void try_other_kind(int c, int owner) {
    ++others;
    of(c).other = {sent, u8(owner), silent, u8(sizes.watchdog), 0, 0, 0};
  }
  void run_other_kind(int c) {
    auto& x = of(c).other;
    u8 const field = field_of(c, x.by);
    if (x.gives_back) {
      if (server.holder == field) server.clear(false), publish(c);
      x.says = absent;
    } else {
      x.says = server.holder == 0 || server.holder == field ? grant(field, sizes.watchdog) : busy;
    }
    x.where = answered;
  }
  void answer_other_kind(int c) {
    auto& x = of(c).other;
    if (x.says != done) {
      x = {};
      return;
    }
    x.held = x.left > 0, x.gives_back = !x.held;
    x.where = x.held ? outbox : sent, x.says = silent;
  }
  void end_other_kind(int c) {
    auto& x = of(c).other;
    x.held = 0, x.gives_back = 1, x.where = sent;
  }
};
