// The server's side of the read/write model: the hash, one stamp (timeout key) per read hold, and the scripts of
// lib/wire/read_write_scripts.cpp as single steps. Time is in ticks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

using u8 = std::uint8_t;

inline constexpr int owners = 3;  // 0 and 1 belong to one client, 2 to another
inline constexpr int most_holds = 3;
inline constexpr int read_side = 0, write_side = 1;
inline constexpr int short_lease = 1, watchdog_lease = 2, long_lease = 3;

enum mode : u8 { free_mode, read_mode, write_mode };
enum what : u8 { nothing, acquire, release };
enum answers : u8 { granted, busy, gone, released, still_held, absent };

// Rules that can be taken out; 1 is the algorithm as it is.
struct server_rules {
  int write_keeps_time = 1;  // while somebody writes, a read release does not lower the time to live
  int renew_raises = 1;      // a renewal of a read hold never shortens the time of the hash
  int downgrade_tells = 1;   // the writer who leaves read holds behind publishes
  int downgrade_keeps = 1;   // ... and leaves them
  int others_stay = 1;       // the last release of one reader leaves the others
  int reclaim = 1;           // readers whose stamps are gone are not waited for
  int carry_stamps = 1;      // an acquire that corrects the count carries the longest stamp
  int stamps_set = 1;        // a partial release sets the stamps that stay to the longest lease that stays
  int own_write_only = 1;    // only the writer himself reads beside his write hold
  int readers_count = 1;     // a writer waits for readers
  int never_shorter = 1;     // an acquire never shortens the time of the hash
};
inline server_rules rules;

struct server_state {
  u8 in = free_mode;
  u8 time = 0;  // of the hash
  u8 reads[owners] = {}, writes[owners] = {};
  u8 stamps[owners][most_holds] = {};
  u8 told = 0;  // something was published in this step

  void clear() {
    in = free_mode, time = 0;
    for (int o = 0; o < owners; ++o) reads[o] = writes[o] = 0;  // stamps end by themselves
  }
  int longest_of(int o) const {
    int most = 0;
    for (int i = 0; i < reads[o]; ++i) most = std::max<int>(most, stamps[o][i]);
    return most;
  }
  int longest_read(int but = -1) const {
    int most = 0;
    for (int o = 0; o < owners; ++o)
      if (o != but) most = std::max(most, longest_of(o));
    return most;
  }
  bool admits(int o, int side) const {
    if (in == free_mode) return true;
    if (side == write_side) return in == write_mode ? writes[o] > 0 : !rules.readers_count;
    return in == read_mode || writes[o] > 0 || !rules.own_write_only;
  }
  void raise(int lease) { time = u8(std::max<int>(time, lease)); }

  answers run_acquire(int o, int side, int target, int lease) {
    u8& count = side == write_side ? writes[o] : reads[o];
    if (target > 1 && count == 0) return gone;
    if (!admits(o, side)) return busy;
    if (in == free_mode) in = side == write_side ? write_mode : read_mode;
    if (side == write_side) in = write_mode;
    int stamp = lease;
    if (side == read_side && target > 1 && count >= target && rules.carry_stamps)
      stamp = std::max(lease, longest_of(o));
    count = u8(target);
    if (side == read_side) stamps[o][target - 1] = u8(stamp);
    if (rules.never_shorter)
      raise(stamp);
    else
      time = u8(lease);
    return granted;
  }

  answers run_release(int o, int side, int target, int lease) {
    u8& count = side == write_side ? writes[o] : reads[o];
    if (count == 0) return absent;
    if (side == write_side) return release_write(o, target, lease);
    int const had = count;
    count = u8(target);
    if (target > 0) {
      for (int i = 0; i < target && rules.stamps_set; ++i) stamps[o][i] = u8(lease);
      raise(lease);
    }
    for (int i = target; i < had; ++i) stamps[o][i] = 0;
    if (in == write_mode && rules.write_keeps_time) return target > 0 ? still_held : released;
    int const most = longest_read();
    bool const others = in == write_mode || std::any_of(reads, reads + owners, [](u8 n) { return n > 0; });
    if (target > 0 || (others && (most > 0 || !rules.reclaim) && rules.others_stay)) {
      if (most > 0) time = u8(most);
      return target > 0 ? still_held : released;
    }
    clear();
    told = 1;
    return released;
  }

  answers release_write(int o, int target, int lease) {
    writes[o] = u8(target);
    if (target > 0) {
      time = u8(std::max(lease, longest_read()));
      return still_held;
    }
    if (reads[o] == 0 || !rules.downgrade_keeps) {
      clear();
      told = 1;
      return released;
    }
    in = read_mode;
    if (longest_read() > 0) time = u8(longest_read());
    told = u8(rules.downgrade_tells);
    return released;
  }

  answers run_renew(int o, int side) {
    u8 const count = side == write_side ? writes[o] : reads[o];
    if (count == 0) return absent;
    for (int i = 0; side == read_side && i < count; ++i) stamps[o][i] = u8(std::max<int>(stamps[o][i], watchdog_lease));
    if (side == read_side && !rules.renew_raises)
      time = watchdog_lease;
    else
      raise(watchdog_lease);
    return granted;
  }

  // True: the hash has gone.
  bool tick() {
    for (auto& of : stamps)
      for (auto& one : of) one = u8(one > 0 ? one - 1 : 0);
    if (time > 0 && --time == 0) {
      clear();
      return true;
    }
    return false;
  }
};

// The clients' side of the read/write model: what an owner believes, has under way and waits for. The names are those
// of lib/machine/name_*.cpp.

// Rules of the client; 1 is the algorithm as it is.
inline int kill_first = 1;  // what a discarded connection left is killed before anything is repeated
inline int longest = 1;     // a partial release names the longest remaining time of the holds that stay
inline int by_side = 1;     // a hold that ends while a request of the other side is under way is repaired behind it
inline int both_sides = 1;  // who asks anew because other holds ended repairs what an earlier copy may have done
inline int abandoned_returns = 1;  // a grant that nobody wants is given back
inline int lost_returns = 1;       // a hold that ended by the local clock is given back
inline int from_send = 1;          // a lease counts from sending
inline int no_upgrade = 1;         // who only reads is not let wait for the write side
// The size of the world.
inline int life = 2, ticks = 1, discards = 1, cancels = 1, deaths = 0, active = 3, depth = 2, leases = 7;

enum place : u8 { none, outbox, sent, answered, in_doubt };

struct hold {
  u8 left = 0, side = 0, watchdog = 0;
};

struct owner_state {
  hold holds[most_holds] = {};
  u8 held = 0;
  // The request under way.
  u8 what = nothing, side = 0, target = 0, lease = 0, watchdog = 0, where = none, answer = 0, age = 0;
  u8 abandoned = 0, at_once = 0, owes = 0, fix = 0, repeated = 0;
  // A copy of a request in a discarded connection.
  u8 late_what = nothing, late_side = 0, late_target = 0, late_lease = 0;
  // A call that waits: asleep until a message, or behind the request under way.
  u8 asleep = 0, behind = 0, heard = 0, want_side = 0, want_lease = 0, want_watchdog = 0;
  u8 life = 0, dead = 0;

  int live(int s) const {
    int n = 0;
    for (int i = 0; i < held; ++i) n += holds[i].side == s;
    return n;
  }
  int longest_left(int s) const {
    int most = 0;
    for (int i = 0; i < held; ++i)
      if (holds[i].side == s) {
        int const left = holds[i].watchdog ? watchdog_lease : holds[i].left;
        most = longest ? std::max(most, left) : left;
      }
    return most;
  }
  void drop(int i) {
    for (; i + 1 < held; ++i) holds[i] = holds[i + 1];
    holds[--held] = {};
  }
  void finish() {
    what = nothing, side = target = lease = watchdog = 0, where = none, answer = age = 0;
    abandoned = at_once = owes = fix = repeated = 0;
  }
};

struct clients_state {
  server_state server;
  owner_state all[owners];
  u8 ticks_left = 0, discards_left = 0, cancels_left = 0, deaths_left = 0;

  static int client_of(int o) { return o < 2 ? 0 : 1; }

  // --- the client ---

  void give_back(int o, int side) {
    auto& w = all[o];
    w.finish();
    w.what = release, w.side = u8(side), w.where = outbox, w.target = u8(w.live(side));
  }

  void repair(int o, int side) {
    auto& w = all[o];
    if (w.what == nothing) return give_back(o, side);
    if (w.where == outbox && lapsed(o))
      requeue(o, side);
    else if (w.where != outbox || (by_side && w.side != side))
      w.fix = u8(w.fix | (by_side ? 1 << side : 1 << w.side));
    else
      w.owes = 1;
  }
  bool admitted(int o, int side) const {
    auto const& w = all[o];
    return w.live(write_side) > 0 || (side == read_side && w.live(read_side) > 0);
  }
  // A re-entry, and the holds that let it re-enter are gone.
  bool lapsed(int o) const {
    auto const& w = all[o];
    return w.what == acquire && w.at_once && !w.abandoned && !admitted(o, w.side);
  }
  void requeue(int o, int side) {
    auto& w = all[o];
    int const fix = w.fix | (both_sides && (w.owes || w.repeated) ? 1 << w.side : 0);
    keep_call(o, w);
    give_back(o, side);
    repair_sides(o, fix & ~(1 << side));
    w.behind = 1;
  }
  void repair_sides(int o, int sides) {
    for (int side : {read_side, write_side})
      if (sides >> side & 1) repair(o, side);
  }
  void keep_call(int o, owner_state const& asked) {
    auto& w = all[o];
    w.want_side = asked.side, w.want_lease = asked.lease, w.want_watchdog = asked.watchdog;
  }
  void forget_call(int o) {
    auto& w = all[o];
    w.asleep = w.behind = w.heard = w.want_side = w.want_lease = w.want_watchdog = 0;
  }

  void call(int o, int side, int lease, bool watchdog) {
    auto& w = all[o];
    bool const at_once = admitted(o, side);
    if (!at_once && no_upgrade && w.live(read_side) > 0) return forget_call(o);  // would deadlock
    forget_call(o);
    w.finish();
    w.what = acquire, w.side = u8(side), w.lease = u8(lease), w.watchdog = watchdog, w.where = outbox;
    w.at_once = at_once, w.target = u8(w.live(side) + 1);
  }
  void call_again(int o) {
    auto const& w = all[o];
    call(o, w.want_side, w.want_lease, w.want_watchdog);
  }

  void advance(int o) {
    auto& w = all[o];
    if (w.what == nothing && (w.behind || (w.asleep && w.heard))) call_again(o);
  }

  void lose(int o, int i) {
    auto& w = all[o];
    int const side = w.holds[i].side;
    w.drop(i);
    if (lost_returns) repair(o, side);
  }
  void lose_side(int o, int side) {
    auto& w = all[o];
    for (int i = w.held; i-- > 0;)
      if (w.holds[i].side == side) w.drop(i);
  }

  void wake() {
    for (int o = 0; o < owners; ++o) {
      auto& w = all[o];
      if (w.dead) continue;
      if (w.asleep && w.what == nothing)
        call_again(o);
      else if (w.asleep || (w.what == acquire && !w.abandoned))
        w.heard = 1;
    }
  }

  void run(int o, int what, int side, int target, int lease, bool late) {
    server.told = 0;
    answers const got =
        what == acquire ? server.run_acquire(o, side, target, lease) : server.run_release(o, side, target, lease);
    if (!late) all[o].answer = got, all[o].where = answered;
    if (std::exchange(server.told, u8(0))) wake();
  }

  void send(int o) {
    auto& w = all[o];
    w.target = u8(w.live(w.side) + (w.what == acquire));
    if (w.what == release) w.lease = u8(w.target > 0 ? w.longest_left(w.side) : 0);
    w.where = sent, w.age = 0;
  }

  void take_answer(int o) {
    auto& w = all[o];
    auto const was = w;
    w.finish();
    if (was.what == acquire) {
      acquire_answer(o, was);
      return advance(o);
    }
    if (was.answer == absent && was.target > 0) lose_side(o, was.side);
    int fix = was.fix;
    if (was.answer == still_held && w.live(was.side) == 0) fix |= 1 << was.side;
    if (was.answer == absent) fix &= ~(1 << was.side);
    repair_sides(o, fix);
    advance(o);
  }

  void acquire_answer(int o, owner_state const& was) {
    auto& w = all[o];
    int const side = was.side;
    if (was.answer == gone) {
      lose_side(o, side);
      repair_sides(o, was.fix);
      if (!was.abandoned) keep_call(o, was), w.behind = 1;
      return;
    }
    if (was.answer == busy) {
      repair_sides(o, was.fix);
      if (was.abandoned) return forget_call(o);
      keep_call(o, was), w.asleep = 1;
      return;
    }
    w.heard = 0;
    int const left = was.lease - (from_send ? was.age : 0);
    bool const outer_lost = was.target > 1 && w.live(side) != was.target - 1;
    if (was.abandoned || left <= 0 || outer_lost || w.held == most_holds) {
      if (abandoned_returns) repair(o, side);
      repair_sides(o, was.fix);
      if (outer_lost && !was.abandoned && left > 0) keep_call(o, was), w.behind = 1;
      return;
    }
    w.holds[w.held++] = {u8(left), u8(side), was.watchdog};
    repair_sides(o, was.fix);
    if (was.target > 1) return;
    for (int other = 0; other < owners; ++other)
      if (other != o && client_of(other) == client_of(o))
        for (int s : {read_side, write_side})
          if ((s == write_side || side == write_side) && all[other].live(s) > 0) lose_side(other, s), repair(other, s);
  }

  void cancel(int o) {
    auto& w = all[o];
    if (w.asleep) return forget_call(o);
    w.abandoned = 1;
    w.heard = 0;
    if (w.where != outbox) return;
    bool const clean = !w.repeated && !w.owes;
    int const fix = w.fix, side = w.side;
    w.finish();
    if (!clean) give_back(o, side);
    repair_sides(o, fix);
  }

  void release_hold(int o, int i) {
    auto& w = all[o];
    int const side = w.holds[i].side;
    w.drop(i);
    if (w.what != nothing) return repair(o, side);
    give_back(o, side);
  }

  void discard(int client) {
    for (int o = 0; o < owners; ++o) {
      auto& w = all[o];
      if (client_of(o) != client || (w.where != sent && w.where != answered)) continue;
      if (w.where == sent) w.late_what = w.what, w.late_side = w.side, w.late_target = w.target, w.late_lease = w.lease;
      w.where = in_doubt, w.repeated = 1, w.answer = 0, w.age = 0;
      if (!kill_first) resolve(o);
    }
  }
  void kill(int client) {
    for (int o = 0; o < owners; ++o) {
      if (client_of(o) != client) continue;
      all[o].late_what = nothing, all[o].late_side = all[o].late_target = all[o].late_lease = 0;
      if (all[o].where == in_doubt) resolve(o);
    }
  }
  void resolve(int o) {
    auto& w = all[o];
    w.where = outbox;
    if (lapsed(o)) {
      requeue(o, w.side);
      w.repeated = 1;
      return;
    }
    if (w.what != acquire || !w.abandoned) return;
    int const fix = w.fix;
    give_back(o, w.side);
    w.repeated = 1;
    repair_sides(o, fix);
  }

  void tick() {
    bool const gone_now = server.tick();
    for (int o = 0; o < owners; ++o) {
      auto& w = all[o];
      if (w.where == sent || w.where == answered) w.age = u8(std::min(w.age + 1, 4));
      for (int i = 0; i < w.held; ++i) --w.holds[i].left;
      for (int i = w.held; i-- > 0;)
        if (w.holds[i].left == 0) lose(o, i), i = w.held;
    }
    if (gone_now) wake();  // the hint
  }

  void renew(int o, int side) {
    auto& w = all[o];
    if (server.run_renew(o, side) == absent) {
      lose_side(o, side);
      repair(o, side);
      return;
    }
    for (int i = 0; i < w.held; ++i)
      if (w.holds[i].side == side && w.holds[i].watchdog) w.holds[i].left = watchdog_lease;
  }
};
