// Explicit-state model of a failover: two servers, of which one is master and the other its copy, with what is on the
// way between them; a client with up to two owners, and a stranger who always knows the master. A promoted copy keeps a
// piece of the old master's history from its beginning on; the old master goes on for a while, or is dead; later it
// follows the new one and may be promoted in its turn.
//
//   g++ -O2 -std=c++20 failover.cpp -o failover      ./failover failovers=2 fence=0
//
// Left out: several keys, more than two holds of an owner, hand-offs (a release of the one and an acquire of the
// other), the direct lane (the borrower's request is one like others once a new master is known).

#include "failover_client.hpp"

namespace {

struct state : failover_client {
  template <class Change>
  void add(successors<state>& out, std::string text, Change change) const {
    out.emplace_back(*this, std::move(text));
    change(out.back().first);
  }

  void next(successors<state>& out) const {
    next_own(out);
    next_fault(out);
    next_stranger(out);
    for (int x = 0; x < sizes.owners; ++x) next_user(x, out);
    if (sizes.ticks && time_matters() && may_lag())
      add(out, "time passes", [](state& s) {
        s.tick_servers();
        s.tick_client();
      });
  }

  void next_own(successors<state>& out) const {
    for (int x = 0; x < sizes.owners; ++x) {
      next_request(x, all[x].ask, out);
      next_beside(x, all[x].beside, out);
    }
    next_connection(out);
    next_servers(out);
  }

  // --- by themselves ---

  void next_request(int x, request const& r, successors<state>& out) const {
    std::string const text = words(x, r), where = " at " + server_name(r.at);
    if (may_send(x)) add(out, "the client sends " + text, [&](state& s) { s.send(x, s.all[x].ask); });
    if (r.where == sent && runs(r.at)) add(out, text + " runs" + where, [&](state& s) { s.run(x, s.all[x].ask); });
    if (r.where != answered) return;
    bool const has_wait =
        (r.what == acquire && r.says == granted) || ((r.what == extend || r.what == enter) && r.says == done);
    std::string const reads =
        "the client reads the answer of " + server_name(r.at) + " to " + text + ": " + words(r.says);
    if (!has_wait || synced(r)) add(out, reads, [&](state& s) { s.answer(x, true); });
    if (has_wait && sizes.copies >= 0) add(out, reads + ", WAIT not met", [&](state& s) { s.answer(x, false); });
  }

  void next_beside(int x, request const& r, successors<state>& out) const {
    std::string const text = words(x, r), where = " at " + server_name(r.at);
    if (r.where == outbox && !(rules.kill_first && debts[route]))
      add(out, "the client sends " + text, [&](state& s) { s.send(x, s.all[x].beside); });
    if (r.where == sent && runs(r.at)) add(out, text + " runs" + where, [&](state& s) { s.run(x, s.all[x].beside); });
    if (r.where != answered) return;
    bool const has_wait = r.what == renew && r.says == done;
    std::string const reads =
        "the client reads the answer of " + server_name(r.at) + " to " + text + ": " + words(r.says);
    if (!has_wait || synced(r)) add(out, reads, [&](state& s) { s.answer_beside(x, true); });
    if (has_wait && sizes.copies >= 0) add(out, reads + ", WAIT not met", [&](state& s) { s.answer_beside(x, false); });
  }

  void next_connection(successors<state>& out) const {
    for (int i = 0; i < late_count; ++i) {
      auto const c = late[i];
      if (!runs(c.at)) continue;
      request const r{c.what, c.lease, 0, 0, 0, 0, 0, 0, 0, 0, 0};
      add(out, "a late copy of " + words(c.by, r) + " runs at " + server_name(c.at), [&](state& s) {
        u8 ignored = 0, says = elsewhere;
        std::copy(s.late + i + 1, s.late + s.late_count, s.late + i);
        s.late[--s.late_count] = late_copy{};
        if (s.at[c.at].role == copy) return;
        says = s.failover_servers::run(c.at, field_of(c.by), c.what, c.lease, ignored);
        if (c.hears) s.late_answer(c, says);
      });
    }
    for (u8 n = 0; n < 2; ++n) {
      if (debts[n] && runs(n)) add(out, server_name(n) + " answers the KILL", [&](state& s) { s.settle_debts(n); });
      bool const owed = ((all[0].owed | all[1].owed) >> n & 1) != 0;
      if (owed && (at[n].role == down || rules.gives_up))
        add(out, "the client waits no longer for " + server_name(n), [&](state& s) { s.take_for_settled(n); });
      if (owed && at[n].role == copy && rules.replica_fences)
        add(out, "the client sees that " + server_name(n) + " is a copy", [&](state& s) { s.take_for_settled(n); });
    }
    if (!known || route != truth)
      add(out, "the client hears that " + server_name(truth) + " is master", [](state& s) { s.learn(); });
    if (message && !tries()) add(out, "the client reads a message", [](state& s) { s.wake(); });
    bool const any = all[0].ended || all[1].ended;
    if (sizes.lag && !asks && any && rules.forgets && may_look_up())
      add(out, "the client asks who is master", [](state& s) { s.look_up(); });
    if (asks) add(out, "the client hears who was master when it asked", [](state& s) { s.hear(); });
  }

  void next_servers(successors<state>& out) const {
    if (on_way > 0 && !stopped) add(out, "the copy hears of a write", [](state& s) { s.replicate(); });
    if (at[other()].role == deposed) add(out, server_name(other()) + " becomes a copy", [](state& s) { s.follow(); });
    if (has == 1 && has_behind == 0) add(out, "the stranger's WAIT is met", [](state& s) { s.has = 2; });
  }

  // --- users and faults ---

  void next_fault(successors<state>& out) const {
    if (failovers < sizes.failovers && has_copy()) {
      std::string const text = server_name(other()) + " is promoted";
      if (sizes.deaths < 2)
        add(out, text + ", " + server_name(truth) + " goes on", [](state& s) { ++s.failovers, s.promote(false); });
      if (sizes.deaths)
        add(out, text + ", " + server_name(truth) + " is dead", [](state& s) { ++s.failovers, s.promote(true); });
    }
    if (at[other()].role == down) add(out, server_name(other()) + " starts as a copy", [](state& s) { s.follow(); });
    if (sizes.stops && !stopped && failovers < sizes.failovers && has_copy())
      add(out, server_name(truth) + " stops", [](state& s) { s.stopped = 1; });
    if (moves < sizes.moves && has_copy() && !stopped)
      add(out, "the slot moves to " + server_name(other()), [](state& s) { s.move(); });
    bool const believed = at[other()].role == deposed && known && route == truth && !rules.epochs;
    if (lies < sizes.lies && believed)
      add(out, "the client hears that " + server_name(other()) + " is master", [](state& s) {
        ++s.lies;
        s.go_to(u8(s.other()));
      });
  }

  void next_stranger(successors<state>& out) const {
    if (!sizes.strangers || stopped) return;
    if (!has && !waits && at[truth].data.holder == 0)
      add(out, "the stranger is granted it at " + server_name(truth), [](state& s) { s.stranger_takes(); });
    if (has || at[truth].data.holder == stranger)
      add(out, "the stranger releases it", [](state& s) { s.stranger_goes(); });
  }

  void next_user(int x, successors<state>& out) const {
    auto const& w = all[x];
    std::string const name = owner_name(x);
    if (!w.ask.what && !w.left && !w.wants && w.calls < sizes.life)
      for (int kind = 0; kind < 3; ++kind)
        if (sizes.leases >> kind & 1)
          add(out, name + " locks, " + std::to_string(lease_of(kind)), [&](state& s) {
            auto& me = s.all[x];
            ++me.calls, me.wants = u8(lease_of(kind));
            s.ask_for(x, acquire, me.wants);
          });
    if (w.inner && !w.ask.what)
      add(out, name + " unlocks once", [&](state& s) {
        s.lose_inner(s.all[x]);
        s.ask_for(x, leave, 0);
      });
    if (w.left && !w.inner && !w.ask.what) {
      for (int kind = 0; kind < 3 && enters < sizes.enters; ++kind)
        if (sizes.leases >> kind & 1)
          add(out, name + " locks once more, " + std::to_string(lease_of(kind)), [&](state& s) {
            ++s.enters;
            s.ask_for(x, enter, u8(lease_of(kind)));
          });
      add(out, name + " unlocks", [&](state& s) { s.give_back(x); });
      for (int kind = 1; kind < 3 && extends < sizes.extends; ++kind)
        if (trust(u8(lease_of(kind)), 0) > 0)
          add(out, name + " extends its hold to " + std::to_string(lease_of(kind)),
              [&](state& s) { s.extend_hold(x, u8(lease_of(kind))); });
    }
    bool const outer_due = w.left < w.lease && w.lease == watchdog;
    bool const inner_due = w.inner && w.inner < w.inner_lease && w.inner_lease == watchdog;
    if (sizes.renewals && w.left && (outer_due || inner_due) && w.beside.where == nowhere && !w.ask.what)
      add(out, "the watchdog renews " + name, [&](state& s) {
        auto& r = s.all[x].beside;
        r.what = renew, r.lease = watchdog, r.where = outbox;
      });
    if (w.wants && !w.ask.abandoned && cancels < sizes.cancels)
      add(out, name + " gives up", [&](state& s) { s.give_up(x); });
  }

  // A shorter deadline holds at once, a longer one from the answer.
  void extend_hold(int x, u8 to) {
    auto& w = all[x];
    ++extends;
    w.lease = to, w.left = std::min(w.left, u8(trust(to, 0))), w.beside = request{};
    ask_for(x, extend, to);
  }

  void give_up(int x) {
    auto& w = all[x];
    ++cancels;
    if (w.ask.what == acquire && w.ask.where != outbox) {
      w.ask.abandoned = 1;
      return;
    }
    bool const may_have_run = w.ask.what == acquire && (w.ask.repeated || w.ask.owes);
    if (w.ask.what == acquire) w.ask = request{};
    w.wants = w.sleeps = 0;
    if (may_have_run) ask_for(x, release, 0);
  }

  bool time_matters() const {
    if (at[other()].role == deposed && at[other()].since >= sizes.deposed_for) return false;
    bool any = at[0].data.ttl || at[1].data.ttl || has_left || waits || quarantined;
    for (auto const& w : all) any = any || w.left || w.ask.where >= sent || w.beside.where >= sent;
    return any;
  }

  // --- what must be true ---

  bool quiet() const {
    if (!known || route != truth || late_count || on_way || message || has == 1 || stopped ||
        at[other()].role == deposed)
      return false;
    for (u8 n = 0; n < 2; ++n)
      if (debts[n] && at[n].role != down) return false;
    for (auto const& w : all)
      if (w.ask.what || w.beside.where) return false;
    return true;
  }

  char const* wrong() const {
    switch (broken) {
      case stale: return "STALE: a grant of a deposed master is believed, though the new one is known";
      case self_busy: return "SELF-BUSY: an owner is told busy because of a hold that his client no longer has";
      case overflow: return "OVERFLOW: the model has too little room";
      default: break;
    }
    auto const& data = at[truth].data;
    int holders = 0;
    for (int x = 0; x < sizes.owners; ++x) {
      auto const& w = all[x];
      if (!w.left) continue;
      if (++holders > 1) return "EXCLUSION: two owners of one client";
      if (sizes.exclusion && has == 2) return "EXCLUSION: the client's owner and the stranger were both told";
      if (sizes.strong && (data.holder != field_of(x) || data.ttl < std::max(w.left, w.inner)))
        return "FORGOTTEN: the master forgets before the holder does";
    }
    if (!quiet()) return nullptr;
    for (int x = 0; x < sizes.owners; ++x) {
      auto const& w = all[x];
      if (w.left && data.holder != field_of(x)) return "NOT TOLD: a holder was never told of his loss";
      if (std::max(w.left, w.inner) > data.ttl) return "FORGOTTEN: the master forgets before the holder does";
      if (sizes.strong && w.left && data.count < (w.inner ? 2 : 1))
        return "COUNT: the master has fewer holds than their owner";
      if (!w.left && data.holder == field_of(x)) return "GHOST: the master has a hold that nobody wants";
      if (w.sleeps && !data.holder && !expired) return "LOST WAKE-UP: somebody waits, and the lock is free";
    }
    return nullptr;
  }
};

int limit = 6'000'000, walk = 0, walks = 1'000, seed = 1;

#define OF(group, member) \
  { #member, &group.member }
std::vector<setting> const all = {
    OF(sizes, owners),        OF(sizes, life),          OF(sizes, leases),      OF(sizes, strangers),
    OF(sizes, ticks),         OF(sizes, renewals),      OF(sizes, failovers),   OF(sizes, deaths),
    OF(sizes, cancels),       OF(sizes, extends),       OF(sizes, lies),        OF(sizes, skew),
    OF(sizes, copies),        OF(sizes, hidden),        OF(sizes, deposed_for), OF(sizes, quarantine),
    OF(sizes, exclusion),     OF(sizes, strong),        OF(rules, orphan),      OF(rules, asserts),
    OF(rules, looks),         OF(rules, returns),       OF(rules, owes),        OF(rules, hears_again),
    OF(rules, settles),       OF(rules, epochs),        OF(rules, grants_wait), OF(rules, unsynced_returns),
    OF(rules, renewals_wait), OF(rules, fence),         OF(rules, kill_first),  OF(rules, replica_fences),
    OF(rules, gives_up),      OF(rules, margin),        OF(sizes, enters),      OF(rules, enter_waits),
    OF(sizes, lag),           OF(sizes, stops),         OF(sizes, moves),       OF(rules, forgets),
    OF(rules, lives),         OF(rules, moved_returns), {"limit", &limit},      {"walk", &walk},
    {"walks", &walks},        {"seed", &seed}};
#undef OF

}  // namespace

int main(int count, char** words) {
  std::string title;
  if (!set(all, count, words, title)) return 2;
  state start;
  std::memset(static_cast<void*>(&start), 0, sizeof start);
  start.at[1].role = copy;
  start.known = 1;
  if (walk > 0) return random_walks(start, walk, walks, seed, title);
  small_search<state> search;
  return search.run(start, std::size_t(limit), title, true);
}
