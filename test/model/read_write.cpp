// Explicit-state model of a read/write lock: owners of two clients, both sides, several holds of each owner with leases
// of three lengths, released in any order; cancelled callers, lost connections with copies that run late, KILL, holds
// that end by the local clock, a process that dies.
//
//   g++ -O2 -std=c++20 read_write.cpp -o read_write      ./read_write life=2 ticks=1 kill=0
//
// Left out, since search.cpp looks at them: the queue in a client (here a message wakes every waiter), lanes, hand-off.

#include "read_write_clients.hpp"
#include "small_search.hpp"

namespace {

struct state : clients_state {
  // --- what may come next ---

  template <class Change>
  void add(successors<state>& out, std::string words, Change change) const {
    state after = *this;
    change(after);
    out.emplace_back(after, std::move(words));
  }

  void next(successors<state>& out) const {
    for (int o = 0; o < active; ++o) next_of(o, out);
    for (int c = 0; c < 2; ++c) {
      bool lost = false, under_way = false;
      for (int o = 0; o < active; ++o)
        if (client_of(o) == c) {
          lost |= all[o].where == in_doubt || all[o].late_what != nothing;
          under_way |= all[o].where == sent || all[o].where == answered;
        }
      std::string const name = "client " + std::to_string(c);
      if (lost && kill_first) add(out, name + " kills and resolves", [&](state& s) { s.kill(c); });
      if (under_way && discards_left > 0)
        add(out, name + " loses its connection", [&](state& s) { --s.discards_left, s.discard(c); });
    }
    if (ticks_left > 0) add(out, "time passes", [](state& s) { --s.ticks_left, s.tick(); });
  }

  void next_of(int o, successors<state>& out) const {
    auto const& w = all[o];
    std::string const name = "owner " + std::to_string(o);
    if (w.late_what != nothing)
      add(out, name + ": a late copy runs", [&](state& s) {
        auto& late = s.all[o];
        int const what = std::exchange(late.late_what, u8(nothing)), side = std::exchange(late.late_side, u8(0));
        int const target = std::exchange(late.late_target, u8(0)), lease = std::exchange(late.late_lease, u8(0));
        s.run(o, what, side, target, lease, true);
      });
    if (w.dead) return;
    if (w.where == outbox) add(out, name + " sends", [&](state& s) { s.send(o); });
    if (w.where == sent)
      add(out, name + (w.what == acquire ? ": acquire runs" : ": release runs"),
          [&](state& s) { s.run(o, w.what, w.side, w.target, w.lease, false); });
    if (w.where == answered) add(out, name + " is answered", [&](state& s) { s.take_answer(o); });
    bool const idle = w.what == nothing && !w.asleep && !w.behind;
    if (idle && w.life > 0 && w.held < depth)
      for (int side : {read_side, write_side})
        for (int lease = short_lease; lease <= long_lease; ++lease)
          if (leases >> (lease - 1) & 1)
            add(out, name + (side ? " wants to write " : " wants to read ") + std::to_string(lease), [&](state& s) {
              --s.all[o].life;
              s.call(o, side, lease, lease == watchdog_lease);
            });
    for (int i = 0; i < w.held; ++i)
      add(out, name + " releases hold " + std::to_string(i), [&](state& s) { s.release_hold(o, i); });
    bool const waits = w.asleep || (w.what == acquire && !w.abandoned);
    if (waits && cancels_left > 0) add(out, name + " gives up", [&](state& s) { --s.cancels_left, s.cancel(o); });
    for (int side : {read_side, write_side}) {
      bool due = false;
      for (int i = 0; i < w.held; ++i)
        due |= w.holds[i].side == side && w.holds[i].watchdog && w.holds[i].left < watchdog_lease;
      if (due) add(out, name + " renews " + std::to_string(side), [&](state& s) { s.renew(o, side); });
    }
    if (deaths_left > 0 && w.held > 0)
      add(out, name + " dies", [&](state& s) {
        --s.deaths_left;
        s.all[o] = {};
        s.all[o].dead = 1;
      });
  }

  // --- what must be true ---

  char const* wrong() const {
    for (int o = 0; o < owners; ++o) {
      auto const& w = all[o];
      for (int p = 0; p < owners; ++p)
        if (p != o && w.live(write_side) > 0 && all[p].held > 0) return "EXCLUSION: a writer and somebody else";
      for (int i = 0; i < w.held; ++i)
        if (server.time < w.holds[i].left) return "FORGOTTEN: the hash ends before a hold does";
      if (w.live(read_side) > server.reads[o] || w.live(write_side) > server.writes[o])
        return "FORGOTTEN: the server counts less than is held";
      for (int i = 0; i < w.held; ++i)
        if (w.holds[i].side == read_side && server.longest_of(o) < w.holds[i].left)
          return "FORGOTTEN: the stamps end before a read hold does";
      for (int p = 0; p < owners; ++p)
        if (p != o && server.writes[o] > 0 && server.reads[p] + server.writes[p] > 0) return "EXCLUSION: on the server";
      if (w.asleep && w.want_side == write_side && w.live(read_side) > 0 && w.live(write_side) == 0)
        return "SELF-DEADLOCK: a reader waits for himself";
    }
    for (int o = 0; o < owners; ++o)
      if (all[o].what != nothing || all[o].behind || all[o].late_what != nothing) return nullptr;
    for (int o = 0; o < owners; ++o) {  // all is quiet
      auto const& w = all[o];
      if (w.dead) continue;
      if (server.reads[o] > w.live(read_side) || server.writes[o] > w.live(write_side))
        return "GHOST: the server counts more than is held";
      bool const nobody = server.in == read_mode && server.longest_read() == 0;
      if (w.asleep && (server.admits(o, w.want_side) || nobody)) return "LOST WAKE-UP: the lock is open";
    }
    return nullptr;
  }
};

}  // namespace

int main(int count, char** words) {
  std::vector<setting> const all = {{"kill", &kill_first},
                                    {"longest", &longest},
                                    {"by_side", &by_side},
                                    {"both_sides", &both_sides},
                                    {"abandoned_returns", &abandoned_returns},
                                    {"lost_returns", &lost_returns},
                                    {"from_send", &from_send},
                                    {"no_upgrade", &no_upgrade},
                                    {"write_keeps_time", &rules.write_keeps_time},
                                    {"renew_raises", &rules.renew_raises},
                                    {"downgrade_tells", &rules.downgrade_tells},
                                    {"downgrade_keeps", &rules.downgrade_keeps},
                                    {"others_stay", &rules.others_stay},
                                    {"reclaim", &rules.reclaim},
                                    {"carry_stamps", &rules.carry_stamps},
                                    {"stamps_set", &rules.stamps_set},
                                    {"own_write_only", &rules.own_write_only},
                                    {"readers_count", &rules.readers_count},
                                    {"never_shorter", &rules.never_shorter},
                                    {"life", &life},
                                    {"ticks", &ticks},
                                    {"discards", &discards},
                                    {"cancels", &cancels},
                                    {"deaths", &deaths},
                                    {"owners", &active},
                                    {"depth", &depth},
                                    {"leases", &leases}};
  std::string title;
  if (!set(all, count, words, title)) return 2;
  state start;
  std::memset(static_cast<void*>(&start), 0, sizeof start);
  start.ticks_left = u8(ticks), start.discards_left = u8(discards);
  start.cancels_left = u8(cancels), start.deaths_left = u8(deaths);
  for (auto& one : start.all) one.life = u8(life);
  small_search<state> search;
  return search.run(start, 8'000'000, title);
}
