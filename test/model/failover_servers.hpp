#pragma once
// The two servers of the model of failovers: writes, replication, promotion, and what a deposed master still does.

#include "failover_state.hpp"

struct failover_servers : failover_world {
  int other() const { return 1 - truth; }
  bool has_copy() const { return at[other()].role == copy; }
  u8 changes() const { return u8(failovers + moves); }
  bool runs(int s) const { return at[s].role != down && !(stopped && s == truth); }
  // Time passes only as long as what is to reach the copy does.
  bool may_lag() const {
    return !sizes.lag || stopped || std::none_of(way_age, way_age + on_way, [](u8 age) { return age >= sizes.lag; });
  }
  void violate(failover_violation what) {
    if (broken == fine) broken = what;
  }

  // --- replication ---

  void replicate() {
    at[other()].data = way[0];
    std::copy(way + 1, way + on_way, way);
    std::copy(way_age + 1, way_age + on_way, way_age);
    way[--on_way] = lock_data{}, way_age[on_way] = 0;
    for (auto& w : all)
      for (request* r : {&w.ask, &w.beside})
        if (r->at == truth && r->behind > 0 && r->behind != never) --r->behind;
    if (has_behind > 0 && has_behind != never) --has_behind;
  }

  // What has to reach the copy for the server's present state.
  u8 behind(int s) const {
    if (s != truth || !has_copy()) return never;
    return on_way;
  }

  void write(int s, lock_data to) {
    at[s].data = to;
    if (s != truth || !has_copy()) return;
    if (on_way == most_way) replicate();
    way[on_way++] = to;
  }

  void publish(int s) {
    if (heard_at == s + 1) message = 1;
  }

  // --- the scripts ---

  u8 run(int s, u8 by, u8 what, u8 lease, u8& left) {
    lock_data now = at[s].data;
    bool const own = now.holder == by;
    left = now.ttl;
    switch (what) {
      case acquire:
        if (now.holder != 0 && !own) return busy;
        write(s, {by, lease, 1});
        if (s == truth) expired = 0;
        return granted;
      case release:
        if (!own) return absent;
        write(s, {});
        publish(s);
        return done;
      case extend:
        if (!own) return absent;
        write(s, {by, lease, now.count});
        return done;
      case renew:
        if (!own) return absent;
        if (now.ttl < lease) write(s, {by, lease, now.count});
        return done;
      case enter:
        if (!own) return absent;
        write(s, {by, std::max(now.ttl, lease), 2});
        return done;
      case leave:
        if (!own) return absent;
        write(s, {by, lease, 1});
        return done;
      case look: return own ? done : absent;
      default: return silent;
    }
  }

  // --- failover ---

  // The copy keeps what has reached it: a piece of the master's history from its beginning on.
  void promote(bool dies) {
    for (auto& w : all)
      for (request* r : {&w.ask, &w.beside})
        if (r->at == truth && r->behind > 0) r->behind = never;
    if (has_behind > 0) has_behind = never;
    at[truth].role = dies ? down : deposed, at[truth].since = 0;
    if (dies) forget_late(truth), at[truth].data = lock_data{};
    empty_way();
    stopped = moved = 0;
    if (!sizes.hidden) read_all(other());
    truth = u8(other()), at[truth].role = master, at[truth].since = 0;
    known = 0;
    auto& d = at[truth].data;
    // What is left of a lease is judged by each server's own clock.
    int const left = d.ttl + (truth == 1 ? -sizes.skew : sizes.skew);
    if (d.holder != 0) d = left > 0 ? lock_data{d.holder, u8(left), d.count} : lock_data{};
    if (d.holder == 0) expired = 1;
    if (d.holder != stranger || has == 1) has = has_left = has_behind = 0;
    if (sizes.quarantine > 0) waits = u8(sizes.quarantine);
  }

  void empty_way() {
    std::fill(way, way + most_way, lock_data{});
    std::fill(way_age, way_age + most_way, u8(0));
    on_way = 0;
  }

  // All that it has goes along, and is everywhere at once. Who waits for an answer of a time when another one was
  // master is told to ask again.
  void move() {
    ++moves, moved = 1;
    empty_way();
    if (!sizes.hidden) read_all(other());
    for (auto& w : all)
      for (request* r : {&w.ask, &w.beside})
        if (r->where == answered && r->behind == never)
          r->says = elsewhere;
        else if (r->where == answered && r->at == truth)
          r->at = u8(other()), r->behind = 0;
    if (has_behind > 0) has_behind = 0;
    at[other()] = {at[truth].data, master, 0};
    at[truth].role = copy;
    truth = u8(other()), known = 0;
  }

  // The old master, or what starts in its place, becomes the new one's copy.
  void follow() {
    if (!sizes.hidden) read_all(other());
    at[other()] = {at[truth].data, copy, 0};
    for (auto& w : all)
      for (request* r : {&w.ask, &w.beside})
        if (r->where == answered && r->at == other()) r->behind = never;
  }

  // A copy has read what its connections had, and sent it elsewhere.
  void read_all(int s) {
    forget_late(s);
    for (auto& w : all)
      for (request* r : {&w.ask, &w.beside})
        if (r->where == sent && r->at == s) r->where = answered, r->says = elsewhere;
  }

  void forget_late(int s) {
    int kept = 0;
    for (int i = 0; i < late_count; ++i)
      if (late[i].at != s) late[kept++] = late[i];
    for (int i = kept; i < late_count; ++i) late[i] = late_copy{};
    late_count = u8(kept);
  }

  void pass(lock_data& d) {
    if (d.ttl > 0 && --d.ttl == 0) d = lock_data{};
  }

  void tick_servers() {
    if (at[truth].data.ttl == 1) expired = 1;
    for (auto& s : at) {
      pass(s.data);
      if (s.role == deposed) s.since = u8(std::min<int>(s.since + 1, sizes.deposed_for));
    }
    for (int i = 0; i < on_way; ++i) {
      pass(way[i]);
      if (sizes.lag) way_age[i] = u8(std::min<int>(way_age[i] + 1, sizes.lag));
    }
    if (has_left > 0 && --has_left == 0) has = has_behind = 0;
    if (waits > 0) --waits;
  }

  // --- the stranger ---

  void stranger_takes() {
    write(truth, {stranger, watchdog, 1});
    has = sizes.copies > 0 ? 1 : 2, has_left = u8(watchdog - (rules.margin ? sizes.skew : 0)),
    has_behind = behind(truth);
    expired = 0;
  }
  void stranger_goes() {
    if (at[truth].data.holder == stranger) write(truth, {}), publish(truth);
    has = has_left = has_behind = 0;
  }
};
