#pragma once
// What a state of the world is. One byte per fact, no padding that could differ: states are compared as bytes.

#include "options.hpp"

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

using u8 = std::uint8_t;
using u32 = std::uint32_t;

// What is asked of the server. GRANTEE: the other half of a hand-off, in the record of who gets the lock.
enum : u8 { NOTHING, ACQUIRE, RELEASE, GIVE_BACK, HAND_OFF, RENEW, EXTEND, KILL, FORCE, GRANTEE };

// What the server answers.
enum : u8 {
  NO_ANSWER,
  GRANTED,
  BUSY,
  GONE,
  DONE,
  ABSENT,
  EXTENDED,
  NOT_RENEWED,
  KILLED,
  KILL_BUSY,
  HANDED,      // released, granted
  HAD_IT,      // absent, but the new owner is there: an earlier copy ran
  FOUND_FREE,  // absent, granted
  ELSEWHERE,   // absent, busy
  NOT_RUN
};

// Where the request of a record is. IN_DOUBT: its connection was discarded, and it waits for the KILL.
enum : u8 { NOWHERE, DIRECT, SHARED, OUTBOX, IN_DOUBT };

// Flags of a record's request.
enum : u8 {
  ABANDONED = 1,  // nobody waits for it
  AGAIN = 2,      // an earlier copy was never answered
  TRUTH = 4,      // known to the checker alone: the server did release
  FIX = 8,        // holds of its owner ended while it was under way
  AWAITED = 16,   // somebody waits for this release
  OWES = 32,      // unsent, and a hold of its owner ended meanwhile
  REPLACED = 64   // took the place of an unsent release
};

// Marks of an owner.
enum : u8 {
  ALONE = 1,     // checker: nobody but this call wants the lock
  FORCED = 2,    // checker: the server forgot the hold by force, or silently
  ONCE = 4,      // the call is a one-shot
  LATE = 8,      // ... that came after the try under way was sent
  SAW_BUSY = 16  // checker: somebody else had the lock during the call
};

enum : u8 { IDLE, TOLD_BUSY, UNTRIED };  // place in the queue
enum : u8 { OFF, ASKED, ON };            // subscription of the channel, as the client sees it

inline constexpr int watchdog_ticks = 2, long_ticks = 3, short_ticks = 1;
inline constexpr int slots = 4;        // discarded connections
inline constexpr int lane_length = 8;  // requests or answers on the shared lane
inline constexpr int slot_length = 7;
inline constexpr int stranger = 9;
inline constexpr char letters[] = "acd";

// x: owner (KILL: x and y are a set of slots), y: who gets it, t: target, l: lease.
struct request {
  u32 what : 4, x : 2, y : 2, t : 2, l : 3, ignored : 1, answer : 4, unused : 14;
};
static_assert(sizeof(request) == 4);

struct owner_state {
  u8 left[3];  // remaining trust in each hold, in ticks; 0: none
  u8 kinds;    // bit i: hold i has a fixed lease; bit 3+i: the renewal under way counts for it
  u8 what, target, lease, flags, where, age;  // the one request; age: ticks since it was sent
  u8 until;                                   // release: what remained of the hold that it ends
  u8 partner;                                 // hand-off: the other owner
  u8 extended;                                // extend: which hold (3: lost meanwhile)
  u8 renewing, renewal_age;
  u8 place, marks, lives, wants;  // in the queue; marks; acquires so far; lease of the call
};

struct server_state {
  u8 holder, count, ttl;  // holder: 0 free, 1.. ours, 9 the stranger
};

struct state {
  server_state at[2];                           // [1]: the other server
  u8 shared_at, direct_at, messages_at, truth;  // which server each connection reached; which one is the real one
  u8 asked_n, answers_n;                        // lengths of the shared lane, both ways
  u8 remembered;                                // slots whose KILL was not answered by an integer
  u8 slots_used, direct_down, session_down, closed;
  u8 expired;                                // the lock ended without a message since the last try
  u8 streak_over, used_streaks;              // no hand-off until the lock was really released
  u8 stranger_waits;                         // 1: B sleeps, 2: B was woken
  u8 queue[3], queue_n, view, dirty, timer;  // dirty: a message that no try has followed
  u8 subscribed, sub_n, push_n, sub_queue[3], push[4];
  u8 force_pending, force_done;  // 1 under way, 2 to be said after the KILL
  u8 used_discards, used_timeouts, used_busy_kills, used_switches, used_lane_switches, used_losses, used_cancels;
  u8 used_extends, used_forces, used_not_run, used_expire;
  request asked[lane_length], answers[lane_length];
  request direct_asked, direct_answer, old_answer;
  request late[slots][slot_length];  // bytes left in discarded connections
  u8 late_n[slots], late_at[slots];
  owner_state w[3];
};

struct step {
  char const* text;
  int a, b, c;
  request r;
  bool internal;  // happens by itself; the rest is users, time and faults
  char const* violation;
};
using successors = std::vector<std::pair<state, step>>;

inline int live(owner_state const& w) { return (w.left[0] > 0) + (w.left[1] > 0) + (w.left[2] > 0); }
inline bool is_release(owner_state const& w) { return w.what == RELEASE || w.what == GIVE_BACK; }
inline bool is_try(owner_state const& w) { return w.what == ACQUIRE || w.what == GRANTEE; }
inline server_state const& real(state const& s) { return s.at[s.truth]; }

// --- words ---

inline std::string words(request const& r) {
  static char const* names[] = {"",      "acquire", "release", "give-back",   "hand-off",
                                "renew", "extend",  "KILL",    "force-unlock"};
  char text[80];
  char const x = letters[r.x < 3 ? r.x : 0], y = letters[r.y < 3 ? r.y : 0];
  if (r.what == KILL)
    std::snprintf(text, sizeof text, "KILL slots %d", int(r.x | r.y << 2));
  else if (r.what == HAND_OFF)
    std::snprintf(text, sizeof text, "hand-off(%c to %c)", x, y);
  else if (r.what == ACQUIRE)
    std::snprintf(text, sizeof text, "acquire(%c to %d, %s)", x, int(r.t),
                  r.l == watchdog_ticks ? "watchdog"
                  : r.l == short_ticks  ? "short"
                                        : "long");
  else if (r.t)
    std::snprintf(text, sizeof text, "%s(%c to %d, L=%d)", names[r.what], x, int(r.t), int(r.l));
  else if (r.what == EXTEND)
    std::snprintf(text, sizeof text, "extend(%c, ttl %d)", x, int(r.l));
  else
    std::snprintf(text, sizeof text, "%s(%c)", names[r.what], x);
  return text;
}

inline std::string words(step const& one) {
  static char const* answers[] = {"",
                                  "granted",
                                  "busy",
                                  "gone",
                                  "done",
                                  "absent",
                                  "extended",
                                  "gone",
                                  "killed",
                                  "BUSY",
                                  "done+granted",
                                  "grantee had it+granted",
                                  "absent+granted",
                                  "absent+busy",
                                  "not run"};
  std::string out;
  for (char const* p = one.text; *p; ++p) {
    if (*p != '%') {
      out += *p;
      continue;
    }
    switch (*++p) {
      case 'x': out += letters[one.a]; break;
      case 'y': out += letters[one.b]; break;
      case 'b': out += std::to_string(one.b); break;
      case 'c': out += std::to_string(one.c); break;
      case 'r': out += words(one.r); break;
      case '=': out += answers[one.r.answer]; break;
      case 'l': out += one.c == DIRECT ? " on the direct lane" : one.c == OUTBOX ? " (in the outbox)" : ""; break;
      default: break;
    }
  }
  return out;
}

inline std::string words(state const& s) {
  static char const* places[] = {"", "told busy", "untried"};
  static char const* wheres[] = {"", "direct", "shared", "outbox", "in_doubt"};
  static char const* asks[] = {"", "acquire", "release", "give-back", "hand-off", "", "extend", "", "", "grantee"};
  char text[160];
  u8 const holder = real(s).holder;
  std::string const who = holder == stranger ? "B" : holder ? std::string(1, letters[holder - 1]) : "free";
  std::snprintf(text, sizeof text, "server: %s x%d ttl %d;", who.c_str(), real(s).count, real(s).ttl);
  std::string out = text;
  for (int x = 0; x < o.owners; ++x) {
    owner_state const& w = s.w[x];
    std::snprintf(text, sizeof text, " %c: trust %d,%d,%d %s%s%s %s;", letters[x], w.left[0], w.left[1], w.left[2],
                  asks[w.what], w.what ? "/" : "", wheres[w.where], places[w.place]);
    out += text;
  }
  std::snprintf(text, sizeof text, " waiting %d view %d dirty %d timer %d", s.queue_n, s.view, s.dirty, s.timer);
  return out + text;
}
