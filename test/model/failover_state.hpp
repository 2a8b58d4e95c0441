#pragma once
// The world of the model of failovers: one name on two servers, of which one is master and the other its copy; one
// client with up to two owners, and a stranger.

#include "small_search.hpp"

#include <algorithm>
#include <cstdint>
#include <string>

using u8 = std::uint8_t;

// How much there is of everything. Times are in ticks.
struct failover_sizes {
  int owners = 1;
  int life = 2;       // acquires of one owner
  int leases = 1;     // bits: 1 the watchdog's, 2 a tick, 4 a tick more than the watchdog's
  int strangers = 1;  // 0: nobody else wants the lock
  int ticks = 1;      // 0: time stands still
  int renewals = 1;
  int failovers = 1;
  int deaths = 1;                          // 0: the old master goes on whenever the copy is promoted; 2: it is dead
  int cancels = 0, extends = 0, lies = 0;  // lies: a sentinel that has not heard of the new master is asked
  int enters = 0;                          // how often a holder takes the lock once more
  int skew = 0;                            // how far the copy's clock is ahead
  int copies = 1;        // 1: every copy has to have it (n = all); 0: one that is not promoted is enough; -1: none
  int hidden = 1;        // 1: what was left in a connection may run however late; 0: not after M was a copy itself
  int deposed_for = 99;  // ticks until a deposed master knows it at the latest
  int quarantine = 0;    // ticks
  int exclusion = 1;     // 0: do not check what is not promised with few copies
  int lag = 0;     // ticks until a write has reached the copy, as long as the master runs; 0: there is no such time
  int stops = 0;   // 1: a master may stop for a while before its copy is promoted
  int moves = 0;   // how often the lock goes to the other server with all that it has, as a slot of a cluster does
  int strong = 0;  // 1: check that the master shows what is believed, at any moment
};
inline failover_sizes sizes;

// Rules that can be taken out; 1 is what docs/safety.md has.
struct failover_rules {
  int orphan = 1;            // an answer of the old master is none once the new one is known
  int asserts = 1;           // holds are asserted at the new master
  int looks = 1;             // ... a fixed lease ends no later than the new master says
  int returns = 2;           // given back to the new master: 1 what ended lately, 2 also what was asked for lately
  int owes = 1;              // ... also if its owner has asked anew since, and gives that up unsent
  int hears_again = 1;       // who waits listens and tries at the new master
  int settles = 1;           // fresh tries wait for that
  int epochs = 1;            // nobody goes back to an older epoch
  int grants_wait = 1;       // a grant is told only if its WAIT was met
  int unsynced_returns = 1;  // ... else it is given back
  int renewals_wait = 1;     // a renewal is believed only if its WAIT was met
  int fence = 2;             // what waits until the old master answered for an orphan of the same owner: 0 nothing,
                             // 1 a first grant, for a release; 2 a first grant or an extension, for anything
  int enter_waits = 1;       // ... so does a re-entry
  int kill_first = 1;        // nothing goes to a server that owes the answer to a KILL
  int replica_fences = 0;    // a variant: that the old master is a copy now is taken for its answer
  int gives_up = 0;          // a variant: the wait for the old master ends after connect_timeout, whatever it is doing
  int margin = 1;            // `skew` is taken off every deadline
  int forgets = 1;           // with a lag, what was released is forgotten when its lease has ended, and 1 by an answer
                             // that was asked for so long afterwards; 2 by any answer to a later question; 3 by one
                             // that comes so late; 4 when the time has passed
  int lives = 1;             // ... if the master itself still answers
  int moved_returns = 1;     // what was released is given back where the lock moves to
};
inline failover_rules rules;

inline constexpr int most_owners = 2, most_way = 3, most_late = 6, watchdog = 2;
inline constexpr u8 stranger = 9, never = 7;

enum failover_what : u8 { nothing, acquire, release, extend, renew, look, enter, leave };
enum failover_where : u8 { nowhere, outbox, sent, answered };
enum failover_says : u8 { silent, granted, busy, done, absent, elsewhere };
enum failover_role : u8 { master, deposed, copy, down };

struct lock_data {
  u8 holder, ttl, count;  // holder: 0 free, 1 and 2 the owners, 9 the stranger; count: of an owner's holds
};

struct server_node {
  lock_data data;
  u8 role, since;  // since: how long it has been deposed
};

// `behind`: so many writes have to reach the copy before it has this one. It stays `never` if the copy has left.
struct request {
  // `owes`: if it is withdrawn unsent, a give-back takes its place.
  u8 what, lease, where, at, says, left, age, behind, abandoned, repeated, owes;
};

struct owner_state {
  request ask, beside;                   // its one request; the renewal or the look beside it
  u8 left, lease, inner, inner_lease;    // the hold, and the one within it: 0 none
  u8 wants, sleeps, ended, owed, calls;  // ended: may be on a server unwanted; owed: bits of servers, see `fence`
  u8 age, old;                           // of the release; was it old enough when the client asked?
};

// What was left in a connection that was given up. `hears`: its answer would be read.
struct late_copy {
  u8 what, by, lease, at, hears;
};

enum failover_violation : u8 { fine, stale, self_busy, overflow };

struct failover_world {
  server_node at[2];
  lock_data way[most_way];  // from the master to its copy
  u8 way_age[most_way];
  u8 on_way, truth;   // which of the two is master
  u8 stopped, moved;  // the master; its last change was a move
  // The client. `known`: that `truth` is.
  owner_state all[most_owners];
  late_copy late[most_late];
  u8 late_count, route, known, debts[2], heard_at, message, expired, quarantined;
  // The stranger: 1 granted, 2 told so. It always knows who is master.
  u8 has, has_left, has_behind, waits;
  // Who is master, as the client has asked: whether it waits for the answer, and how many changes that and the client
  // know of.
  u8 asks, shows, heard;
  u8 failovers, moves, lies, cancels, extends, enters, broken;
};

inline int lease_of(int kind) { return kind == 0 ? watchdog : kind == 1 ? 1 : watchdog + 1; }
inline u8 later(u8 age) { return u8(std::min<int>(age + 1, watchdog + 1)); }
inline std::string owner_name(int x) { return x == 0 ? "a" : "c"; }
inline std::string server_name(int s) { return s == 0 ? "M" : "N"; }
inline std::string words(int x, request const& r) {
  static char const* const names[] = {"nothing", "acquire", "release",  "extend",
                                      "renewal", "look",    "re-entry", "inner release"};
  return std::string(names[r.what]) + "(" + owner_name(x) + (r.lease ? ", " + std::to_string(r.lease) : "") + ")";
}
inline char const* words(u8 says) {
  static char const* const all[] = {"nothing", "granted", "busy", "done", "absent", "ask elsewhere"};
  return all[says];
}
