#pragma once
// What may come next in the model of local turns, with words for it.

#include "small_search.hpp"
#include "turns_users.hpp"

template <class State>
struct turns_steps : turns_with_users {
  using next_states = successors<State>;

  template <class Change>
  void add(next_states& out, std::string words, Change change) const {
    out.emplace_back(static_cast<State const&>(*this), std::move(words));
    change(out.back().first);
  }

  void next(next_states& out) const {
    next_own(out);
    for (int c = 0; c < 2; ++c) {
      next_fault(c, client_name(c), out);
      next_client(c, client_name(c), out);
      for (int o = 0; o < owners_of(c) && !clients[c].closed; ++o) next_user(c, o, out);
    }
    next_stranger(out);
    if (sizes.ticks && time_matters()) add(out, "time passes", [](State& s) { s.tick(); });
  }

  // What happens without users, faults and time. Nothing of it: the world is at rest.
  void next_own(next_states& out) const {
    for (int c = 0; c < 2; ++c) {
      next_request(c, client_name(c), out);
      next_hand_off(c, client_name(c), out);
      next_renewal(c, client_name(c), out);
      next_read(c, client_name(c), out);
      next_heard(c, client_name(c), out);
      next_other_kind(c, client_name(c), out);
      next_left(c, client_name(c), out);
      next_force(c, client_name(c), out);
    }
  }

 private:
  static char const* client_name(int c) { return c == 0 ? "P" : "Q"; }

  bool time_matters() const {
    for (auto const& q : clients)
      if (q.tenure.lasts || q.ask.where || q.back.where || q.beside.where || q.hint || q.other.left ||
          std::any_of(q.read, q.read + most_owners, [](auto const& r) { return r.any(); }))
        return true;
    return server.holder != 0 || server.read();
  }

  // --- by themselves ---

  void next_request(int c, std::string const& client, next_states& out) const {
    auto const& r = clients[c].ask;
    if (r.where == outbox) add(out, client + " sends " + words(c, r.order), [&](State& s) { s.send(c); });
    if (r.where == sent)
      add(out, "the server runs " + words(c, r.order), [&](State& s) {
        auto& ask = s.of(c).ask;
        ask.says = s.run(c, ask.order, false, ask.hint), ask.where = answered;
      });
    if (r.where == answered)
      add(out, client + " reads the answer to " + words(c, r.order) + ": " + words(r.says),
          [&](State& s) { s.answer(c); });
    if (confirmation_due(c)) add(out, client + " wants a confirmation", [&](State& s) { s.confirm(c); });
  }

  void next_hand_off(int c, std::string const& client, next_states& out) const {
    if (!sizes.hand_offs) return;
    auto const& q = clients[c];
    if (q.tenure.vacant() && may_turn(c))
      add(out, name_of(c, q.queue[0]) + " has a turn", [&](State& s) { s.begin_turn(c); });
    if (may_hand_off(c))
      add(out, client + " sends hand-off(" + name_of(c, q.ask.order.by) + " to " + name_of(c, q.queue[0]) + ")",
          [&](State& s) { s.send_hand_off(c); });
    std::string const what = "give-back(" + name_of(c, q.back.by) + ")";
    if (q.back.where == outbox) add(out, client + " sends " + what, [&](State& s) { s.send_back(c); });
    if (q.back.where == sent) add(out, "the server runs " + what, [&](State& s) { s.run_back(c); });
    if (q.back.where == answered)
      add(out, client + " reads the answer to " + what + ": " + words(q.back.says),
          [&](State& s) { s.answer_back(c); });
  }

  void next_renewal(int c, std::string const& client, next_states& out) const {
    auto const& r = clients[c].beside;
    turns_order const what{renew, r.by, 0, r.lease};
    if (r.where == sent)
      add(out, "the server runs " + words(c, what), [&](State& s) {
        u8 ignored = 0;
        s.of(c).beside.says = s.run(c, what, false, ignored), s.of(c).beside.where = answered;
      });
    if (r.where == answered)
      add(out, client + " reads the answer to " + words(c, what) + ": " + words(r.says),
          [&](State& s) { s.renewed(c); });
  }

  void next_read(int c, std::string const& client, next_states& out) const {
    for (int o = 0; o < owners_of(c); ++o) {
      auto const& r = clients[c].read[o];
      std::string const what = words(c, r.order) + " of " + name_of(c, o);
      if (r.where == outbox) add(out, client + " sends " + what, [&](State& s) { s.send_read(c, o); });
      if (r.where == sent)
        add(out, "the server runs " + what, [&](State& s) {
          auto& read = s.of(c).read[o];
          auto const order = read.order;
          read.says = s.run(c, order, read.has(abandoned), read.order.count), read.where = answered;
        });
      if (r.where == answered)
        add(out, client + " reads the answer to " + what + ": " + words(r.says),
            [&](State& s) { s.answer_read(c, o); });
    }
  }

  void next_heard(int c, std::string const& client, next_states& out) const {
    auto const& q = clients[c];
    if (q.subscribed == 1) add(out, client + " is subscribed", [&](State& s) { s.subscribed(c); });
    if (q.message) add(out, client + " reads a message", [&](State& s) { s.read_message(c); });
    if (q.pause == pausing) add(out, client + "'s pause ends", [&](State& s) { s.end_pause(c); });
  }

  void next_other_kind(int c, std::string const& client, next_states& out) const {
    auto const& x = clients[c].other;
    std::string const what = client + (x.gives_back ? "'s release of another kind" : "'s acquire of another kind");
    if (x.where == sent) add(out, "the server runs " + what, [&](State& s) { s.run_other_kind(c); });
    if (x.where == answered)
      add(out, "the answer to " + what + " is read: " + words(x.says), [&](State& s) { s.answer_other_kind(c); });
  }

  void next_left(int c, std::string const& client, next_states& out) const {
    auto const& q = clients[c];
    for (int i = 0; i < q.late_count; ++i)
      add(out, "a late copy runs: " + words(c, q.late[i]), [&](State& s) { s.run_late(c, i); });
    if (q.kills) add(out, client + "'s KILL is answered", [&](State& s) { s.kill(c); });
  }

  void next_force(int c, std::string const& client, next_states& out) const {
    auto const& q = clients[c];
    if (q.forcing == sent)
      add(out, "the server runs " + client + "'s force-unlock", [&](State& s) {
        u8 ignored = 0;
        s.run(c, {force, 0, 0, 0}, false, ignored);
        s.of(c).forcing = answered;
      });
    if (q.forcing == answered)
      add(out, client + " reads the answer to its force-unlock", [&](State& s) { s.answer_force(c); });
  }

  // --- by users and faults ---

  void next_fault(int c, std::string const& client, next_states& out) const {
    auto const& q = clients[c];
    if (q.ask.where == sent && not_runs < sizes.not_run)
      add(out, "the server refuses to run " + words(c, q.ask.order),
          [&](State& s) { ++s.not_runs, s.of(c).ask.says = not_run, s.of(c).ask.where = answered; });
    if (q.discards < sizes.discards && may_discard(c))
      add(out, client + " loses its connection", [&](State& s) { ++s.of(c).discards, s.discard(c); });
    if (q.message && message_losses < sizes.message_losses)
      add(out, client + " loses its message connection",
          [&](State& s) { ++s.message_losses, s.of(c).message = 0, s.of(c).subscribed = rules.resubscribes ? 1 : 2; });
  }

  void next_client(int c, std::string const& client, next_states& out) const {
    auto const& q = clients[c];
    auto const& t = q.tenure;
    if (sizes.renewals && t.lasts && !q.beside.where && t.holder != nobody && t.trusted && t.watched())
      add(out, client + " renews", [&](State& s) { s.send_renewal(c, sizes.watchdog); });
    if (!q.queued && q.subscribed == 2 && !q.ask.where && !q.back.where && q.pause != pausing)
      add(out, client + " unsubscribes", [&](State& s) { s.unsubscribe(c); });
    if (c != 0) return;
    if (own_forces < sizes.own_forces && !q.forcing)
      add(out, client + " sends a force-unlock", [&](State& s) { ++s.own_forces, s.send_force(c); });
    if (sizes.closes && !q.closed && (t.lasts || q.ask.where || q.queued))
      add(out, client + " closes", [&](State& s) { s.close(c); });
  }

  void next_user(int c, int o, next_states& out) const {
    auto const& q = clients[c];
    std::string const name = name_of(c, o);
    if (may_call(c, o))
      for (int kind = 0; kind < 3; ++kind)
        for (int member = 0; member <= sizes.members && (sizes.leases >> kind & 1); ++member)
          add(out, name + " locks, " + std::to_string(lease_of(kind)) + (member ? ", for a joint lock" : ""),
              [&](State& s) { s.call(c, o, lease_of(kind), member != 0); });
    if (q.waits(o) && q.cancels < sizes.cancels) add(out, name + " gives up", [&](State& s) { s.give_up(c, o); });
    if (may_read(c, o)) add(out, name + " wants to read", [&](State& s) { s.call_read(c, o); });
    if (q.read[o].left) add(out, name + " reads no longer", [&](State& s) { s.read_no_longer(c, o); });
    for (int i = 0; i < most_holds; ++i)
      if (q.tenure.holder == o && q.tenure.left[i])
        add(out, name + " unlocks hold " + std::to_string(i + 1), [&](State& s) { s.unlock(c, i); });
    if (c == 0 && others < sizes.other_kind && !q.other.where && !in_use(c, o))
      add(out, name + " tries another kind", [&](State& s) { s.try_other_kind(c, o); });
    if (q.other.where == outbox && q.other.by == o)
      add(out, name + " unlocks the other kind", [&](State& s) { s.end_other_kind(c); });
  }

  void next_stranger(next_states& out) const {
    bool const held = server.holder || server.read();
    if (held && foreign_forces < sizes.foreign_forces)
      add(out, "a stranger's force-unlock runs", [](State& s) {
        ++s.foreign_forces, s.take_away(by_others), s.server.clear(false);
        s.publish(-1);
      });
    if (held && vanishes < sizes.vanishes)
      add(out, "the key vanishes", [](State& s) { ++s.vanishes, s.take_away(by_others), s.server.clear(true); });
  }
};
