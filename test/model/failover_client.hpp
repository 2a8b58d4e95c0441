#pragma once
// The client of the model of failovers: what it asks, what it makes of answers, and what it does when it hears of a new
// master.

#include "failover_servers.hpp"

struct failover_client : failover_servers {
  static u8 field_of(int x) { return u8(x + 1); }
  int trust(u8 lease, u8 age) const { return lease - age - (rules.margin ? sizes.skew : 0); }

  // Does the number of copies that have it do? Each question is asked when its answer is read.
  bool synced(request const& r) const { return sizes.copies <= 0 || r.behind == 0; }

  // --- sending ---

  void ask_for(int x, u8 what, u8 lease) {
    all[x].ask = request{};
    all[x].ask.what = what, all[x].ask.lease = lease, all[x].ask.where = outbox;
  }

  // Only the head of the queue tries, and not before another owner's release was answered; after a new master was heard
  // of, nor before the holds were asserted.
  bool in_doubt(int except) const {
    for (int x = 0; x < sizes.owners; ++x) {
      auto const& w = all[x];
      if (x == except) continue;
      if (w.ask.what == release || w.sleeps || (w.ask.what == acquire && w.ask.where != outbox)) return true;
      if (rules.settles && w.beside.where != nowhere && w.beside.repeated) return true;
    }
    return false;
  }

  bool fenced(int x) const {
    auto const& w = all[x];
    bool const again = rules.enter_waits && w.ask.what == enter;
    bool const asks_more = w.ask.what == extend || ((w.ask.what == acquire || again) && !w.ask.repeated);
    return asks_more && w.owed != 0;
  }

  bool may_send(int x) const {
    auto const& w = all[x];
    if (w.ask.where != outbox || (rules.kill_first && debts[route])) return false;
    if (w.ask.what == release || w.ask.what == leave) return true;
    if (w.ask.what == acquire && (in_doubt(x) || quarantined)) return false;
    return !fenced(x);
  }

  // What the longest of the holds needs.
  u8 needs(owner_state const& w) const {
    int const margin = rules.margin ? sizes.skew : 0;
    int most = 0;
    if (w.left > 0) most = w.lease == watchdog ? watchdog : w.left + margin;
    if (w.inner > 0) most = std::max(most, w.inner_lease == watchdog ? watchdog : w.inner + margin);
    return u8(most);
  }
  void send(int x, request& r) {
    if (r.what == leave || r.what == renew) r.lease = needs(all[x]);
    send(r);
  }
  void send(request& r) { r.where = sent, r.at = route, r.age = 0, r.says = silent, r.behind = never; }

  void run(int x, request& r) {
    r.where = answered;
    if (at[r.at].role == copy) {
      r.says = elsewhere;
      return;
    }
    u8 const holder = at[r.at].data.holder;
    r.says = failover_servers::run(r.at, field_of(x), r.what, r.lease, r.left);
    r.behind = behind(r.at);
    if (r.what != acquire || r.says != busy) return;
    if (!all[x].sleeps && heard_at != r.at + 1) heard_at = u8(r.at + 1), message = 0;
    if (holder != stranger && r.at == truth && known && !all[holder - 1].left && !all[holder - 1].ask.what)
      violate(self_busy);
  }

  // --- answers ---

  // The holds of the others end with a grant: the server has lost them.
  void believe(int x, u8 left, u8 lease, u8 from) {
    if (known && from != truth) violate(stale);
    auto& w = all[x];
    w.left = left, w.lease = lease;
  }

  static void remember(owner_state& w) { w.ended = 1, w.age = w.old = 0; }

  void end_hold(int x) {
    auto& w = all[x];
    w.left = w.lease = w.inner = w.inner_lease = 0;
    remember(w);
    w.beside = request{};
    bool const unsent = w.ask.where == outbox;
    if (w.ask.what == extend || w.ask.what == release || w.ask.what == leave || (w.ask.what == enter && unsent))
      w.ask = request{};
  }

  void lose_inner(owner_state& w) { w.inner = w.inner_lease = 0; }

  void give_back(int x) {
    end_hold(x);
    if (all[x].ask.what == enter)
      all[x].ask.abandoned = 1;
    else
      ask_for(x, release, 0);
  }

  void grant(int x, request const& r, bool met) {
    auto& w = all[x];
    int const left = trust(r.lease, r.age);
    bool const tells = met || !rules.grants_wait;
    w.ask = request{};
    remember(w);
    if (!tells || r.abandoned || left <= 0) {
      w.wants = w.sleeps = 0;
      if (tells || rules.unsynced_returns) ask_for(x, release, 0);
      return;
    }
    for (int y = 0; y < sizes.owners; ++y)
      if (y != x && all[y].left > 0) end_hold(y);
    w.wants = w.sleeps = 0;
    believe(x, u8(left), r.lease, r.at);
  }

  void answer(int x, bool met) {
    auto& w = all[x];
    request const r = w.ask;
    if (r.says == elsewhere) {
      w.ask.where = outbox;
      return;
    }
    if (r.what == acquire && r.says == granted) return grant(x, r, met);
    w.ask = request{};
    if (r.what == acquire && r.says == busy) {
      w.sleeps = w.wants && !r.abandoned;
      if (r.abandoned) w.wants = 0;
      if (w.sleeps && message) wake();
    }
    if (r.what == extend && r.says == done && w.left > 0 && (met || !rules.renewals_wait)) {
      int const left = trust(r.lease, r.age);
      if (left > w.left) believe(x, u8(left), r.lease, r.at);
    }
    if (r.what == release && (r.says == done || !w.ended)) remember(w);
    if (r.what == extend && r.says == absent) give_back(x);
    if (r.what == enter) entered(x, r, met);
    if (r.what == leave && r.says == absent) end_hold(x);
  }

  void entered(int x, request const& r, bool met) {
    auto& w = all[x];
    int const left = trust(r.lease, r.age);
    if (w.left == 0 || r.abandoned || r.says == absent) return give_back(x);
    if ((!met && rules.grants_wait) || left <= 0) return ask_for(x, leave, 0);
    if (known && r.at != truth) violate(stale);
    w.inner = u8(left), w.inner_lease = r.lease;
  }

  void answer_beside(int x, bool met) {
    auto& w = all[x];
    request const r = w.beside;
    w.beside = request{};
    if (r.says == elsewhere) {
      w.beside = r, w.beside.where = outbox;
      return;
    }
    if (w.left == 0) return;
    if (r.says == absent) return w.ask.what == release ? end_hold(x) : give_back(x);
    int const left = r.what == look ? r.left - r.age : trust(watchdog, r.age);
    if (r.what == look && rules.looks && left < std::max(w.left, w.inner)) {
      if (left <= 0) return give_back(x);
      w.left = std::min(w.left, u8(left)), w.inner = std::min(w.inner, u8(left));
    }
    if (r.what != renew || (!met && rules.renewals_wait)) return;
    if (w.lease == watchdog && left > w.left) believe(x, u8(left), w.lease, r.at);
    if (w.inner > 0 && w.inner_lease == watchdog && left > w.inner) w.inner = u8(left);
  }

  void late_answer(late_copy const& c, u8 says) {
    auto& w = all[c.by];
    if (w.ask.what != c.what) return;
    w.ask.at = c.at, w.ask.says = says, w.ask.where = answered;
    answer(c.by, true);
  }

  // --- messages ---

  // One that comes during a try makes the head try once more.
  bool tries() const { return all[0].ask.what == acquire || all[1].ask.what == acquire; }
  void wake() {
    message = 0;
    for (int x = 0; x < sizes.owners; ++x)
      if (all[x].sleeps) {
        all[x].sleeps = 0;
        return ask_for(x, acquire, all[x].wants);
      }
  }

  // --- a new master ---

  void leave_behind(int x, request const& r) {
    if (r.where == answered && r.says == elsewhere) return;
    debts[r.at] = 1;
    bool const counts = r.what != renew && r.what != look &&
                        (rules.fence == 2 || (rules.fence == 1 && (r.what == release || r.what == leave)));
    if (counts) all[x].owed = u8(all[x].owed | 1 << r.at);
    if (r.where != sent || at[r.at].role == down) return;
    if (late_count == most_late) return violate(overflow);
    late[late_count++] = {r.what, u8(x), r.lease, r.at, u8(!rules.orphan)};
  }

  // What is under way while the lock moves is answered where it was sent.
  void go_to(u8 s, bool by_move = false) {
    route = s;
    for (int x = 0; x < sizes.owners; ++x) {
      auto& w = all[x];
      if (by_move && w.beside.where > outbox) continue;
      if (w.beside.where == sent || w.beside.where == answered) leave_behind(x, w.beside);
      w.beside = request{};
      if (by_move) {
      } else if (w.ask.where == sent || w.ask.where == answered) {
        bool const abandoned = w.ask.abandoned;
        leave_behind(x, w.ask);
        ask_for(x, abandoned ? u8(release) : w.ask.what, abandoned ? u8(0) : w.ask.lease);
        w.ask.repeated = !abandoned;
        if (rules.returns == 2) remember(w);
        if (abandoned) w.wants = 0;
      }
      if (w.left > 0 && w.ask.what != release && rules.asserts) {
        bool const fixed = w.lease != watchdog && w.inner_lease != watchdog;
        w.beside.what = fixed ? look : renew, w.beside.lease = fixed ? u8(0) : u8(watchdog);
        w.beside.where = outbox, w.beside.repeated = 1;
      }
      bool const returns = rules.returns && (!by_move || rules.moved_returns);
      if (w.left == 0 && w.ended && !w.ask.what && !w.sleeps && returns) ask_for(x, release, 0);
    }
    heard_at = by_move ? u8(s + 1) : u8(0), message = by_move;  // who listens where it has gone tries there
    for (int x = 0; x < sizes.owners; ++x) {
      auto& w = all[x];
      if (rules.hears_again && w.sleeps && !w.ask.what) w.sleeps = 0, ask_for(x, acquire, w.wants);
      if (rules.owes && w.ended && w.ask.what == acquire) w.ask.owes = 1;
    }
  }

  void learn() {
    known = 1;
    quarantined = u8(sizes.quarantine);
    if (sizes.lag) heard = changes();
    go_to(truth, moved);
    moved = 0;
  }

  // --- who is asked whether it has changed ---

  // The master itself first, and then others, whether it was that.
  bool may_look_up() const { return !rules.lives || (runs(route) && at[route].role != copy); }
  void look_up() {
    asks = 1, shows = changes();
    for (auto& w : all) w.old = w.ended && (w.age > sizes.lag || rules.forgets == 2);
  }
  void hear() {
    bool const same = shows == heard;
    asks = shows = 0;
    for (auto& w : all) {
      bool const old = w.old || (rules.forgets == 3 && w.age > sizes.lag);
      w.old = 0;
      if (same && old && w.ended && !w.left) w.ended = w.age = 0;
    }
  }
  void settle_debts(u8 s) {
    forget_late(s);
    debts[s] = 0;
    for (auto& w : all) w.owed = u8(w.owed & ~(1 << s));
  }
  void take_for_settled(u8 s) {
    for (auto& w : all) w.owed = u8(w.owed & ~(1 << s));
  }

  // --- time ---

  void tick_client() {
    for (int x = 0; x < sizes.owners; ++x) {
      auto& w = all[x];
      if (sizes.lag && w.ended && !w.left && !w.ask.what) {
        bool const over = ++w.age > watchdog + 1 || (rules.forgets == 4 && w.age > sizes.lag);
        if (over) w.ended = w.age = w.old = 0;
      }
      for (request* r : {&w.ask, &w.beside})
        if (r->where == sent || r->where == answered) r->age = later(r->age);
      if (w.inner > 0 && --w.inner == 0) {
        lose_inner(w);
        ask_for(x, leave, 0);
      }
      if (w.left > 0 && --w.left == 0) {
        if (w.inner > 0)
          w.left = w.inner, w.lease = w.inner_lease, lose_inner(w), ask_for(x, leave, 0);
        else if (w.ask.what == release)
          w.lease = 0;
        else
          give_back(x);
      }
    }
    if (quarantined > 0) --quarantined;
  }
};
