#pragma once
// Hand-offs in the model of local turns: a release and the acquire of the head in one request.

#include "turns_tenure.hpp"

struct turns_with_hand_offs : turns_in_tenure {
  // The head may be granted it in the same request that is the release of the tenure.
  bool may_hand_off(int c) const {
    auto const& q = clients[c];
    auto const& ask = q.ask;
    if (!sizes.hand_offs || q.closed || !q.queued || ask.order.what != release || !may_go_on(q)) return false;
    bool const unsent = q.tenure.lasts && ask.where == outbox && !ask.has(repeated);
    bool const killed = rules.unsent_handed != 1 && ask.where == outbox;
    bool const under_way = rules.unsent_handed == 0 && ask.where == sent && q.has_late_room(1);
    if (!unsent && !killed && !under_way) return false;
    int const to = q.queue[0];
    if (q.back.where && q.back.by == to) return false;
    return to != (rules.lent_not_handed ? ask.order.by : q.tenure.last);
  }

  void send_hand_off(int c) {
    auto& q = of(c);
    u8 const from = q.ask.order.by, to = q.queue[0];
    check_run(c, from);
    count_run(q);
    if (q.ask.where == sent) forget(q);
    bool const member = (q.want_member >> to & 1) != 0;
    q.ask = {{hand_off, from, to, asked_for(q.want[to])}, sent, silent, 0, u8(member ? for_member : 0), 0, 0};
    q.heard = q.tried = q.hint = 0, q.pause = no_pause;
    if (rules.handed_ends) end_tenure(q);
  }

  // The grantee has left, and it lies in the outbox: it is the release again. If a copy was sent he may have it.
  void take_apart(turns_client& q) {
    auto const was = q.ask;
    bool const may_be_there = was.has(repeated);
    begin_ask(q, release, was.order.by, 0, may_be_there ? repeated : 0);
    if (may_be_there && rules.handed_returns) q.back = {outbox, was.order.count, silent};
  }

  void send_back(int c) { of(c).back.where = sent; }
  void run_back(int c) {
    auto& back = of(c).back;
    u8 ignored = 0;
    back.says = run(c, {release, back.by, 0, 0}, false, ignored), back.where = answered;
  }
  void answer_back(int c) {
    auto& q = of(c);
    if (q.back.says == done) q.tried = u8(q.subscribed == 2);
    q.back = {};
    advance(c);
  }
};
