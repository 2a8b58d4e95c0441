// Every knob of the model: sizes, faults, and the rules that can be taken out. `./model help` prints this list.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#define MODEL_OPTIONS(X)                                                                                         \
  /* sizes */                                                                                                    \
  X(owners, 2, "owners of the client, 1 to 3: a, c, d")                                                          \
  X(holds, 1, "holds per owner, 1 to 3")                                                                         \
  X(leases, 1, "bits: 1 watchdog (2 ticks), 2 fixed long (3 ticks), 4 fixed short (1 tick)")                     \
  X(life, 0, "acquires per owner, 0 is without bound")                                                           \
  X(ticks, 1, "time passes")                                                                                     \
  X(stranger, 1, "B, another client, acquires and releases in one step; 2: it also waits for messages")          \
  X(renew, 1, "the watchdog renews")                                                                             \
  X(direct, 1, "there is a direct lane")                                                                         \
  X(async, 1, "a caller may use the shared lane although the direct one is free")                                \
  X(calls, 1, "0 all calls are one-shots (try_lock()), 1 all wait, 2 each chooses")                              \
  X(drop, 1, "leases are dropped (a release that nobody awaits)")                                                \
  X(awaited, 1, "releases are awaited")                                                                          \
  X(hand_off, 1, "releases become hand-offs")                                                                    \
  X(plain, 1, "a release may stay a release although somebody waits (streak)")                                   \
  X(drop_busy, 1, "a lease may be dropped while another request of its owner is under way")                      \
  /* faults: how many of each in a history */                                                                    \
  X(discards, 0, "the shared connection, and so the session, is discarded")                                      \
  X(timeouts, 0, "the direct lane is discarded")                                                                 \
  X(busy_kills, 0, "KILL answers BUSY")                                                                          \
  X(switches, 0, "the name means another server at a reconnect (with a copy of the data)")                       \
  X(data_loss, 0, "1: that server has no copy of the data")                                                      \
  X(lane_switches, 0, "the same, when the direct lane alone reconnects")                                         \
  X(message_losses, 0, "the message connection alone is lost")                                                   \
  X(cancels, 0, "callers give up")                                                                               \
  X(extends, 0, "leases are extended")                                                                           \
  X(forces, 0, "force-unlocks by this client")                                                                   \
  X(closes, 0, "the client is closed")                                                                           \
  X(not_run, 0, "calls answered NOSCRIPT, LOADING, BUSY...: nothing ran")                                        \
  X(expire, 0, "a hold vanishes on the server without a message")                                                \
  X(streaks, 0, "a streak of hand-offs comes to its end: the next release is a real one")                        \
  X(down, 0, "1: between a discard and the reconnect other things happen")                                       \
  X(stall, 0, "1: the borrower of the direct lane may never be scheduled")                                       \
  X(lane_timer, 0, "1: the engine takes back a lane that is lent too long")                                      \
  X(no_sub, 0, "1: SUBSCRIBE may stay without an answer")                                                        \
  /* rules: 1 is the algorithm of docs/safety.md, 0 takes the rule out */                                        \
  X(kill, 1, "what a discarded connection left is killed")                                                       \
  X(kill_all, 1, "every discarded connection is killed, not the newest alone")                                   \
  X(kill_answer, 1, "only an integer counts as the answer to KILL")                                              \
  X(kill_wait, 1, "nothing is repeated before KILL was answered")                                                \
  X(kill_now, 1, "KILL goes although nothing waits for it")                                                      \
  X(session, 1, "the direct lane goes with the shared connection")                                               \
  X(session_messages, 1, "the message connection goes with the shared one")                                      \
  X(old_reply, 1, "an answer of an older session is no answer")                                                  \
  X(peer, 1, "the direct lane goes to the peer of the shared connection, not to the name")                       \
  X(resolve, 1, "a new try waits while the name is in_doubt")                                                    \
  X(lapsed_in_doubt, 1, "a request during which all holds of its owner ended is in_doubt, too")                  \
  X(abandoned_in_doubt, 1, "an abandoned acquire is in_doubt")                                                   \
  X(take_along, 1, "a try takes one unsent release along as a hand-off")                                         \
  X(only_one, 1, "... only if no other release of the name waits unsent")                                        \
  X(parked_ignores, 1, "who waits for the name to be resolved ignores messages and confirmations")               \
  X(own_parks, 1, "a head whose own record has a request under way waits for that answer, untried")              \
  X(longest, 1, "a partial release leaves the longest remaining time of the holds that stay")                    \
  X(watchdog_full, 1, "... and a watchdog hold counts as the whole watchdog time")                               \
  X(renew_greater, 1, "a renewal never shortens")                                                                \
  X(reenter_greater, 1, "a re-entry never shortens")                                                             \
  X(generation, 1, "an answer to a renewal counts for the holds that existed when it was sent")                  \
  X(extend_generation, 1, "extend ends the generation of its hold")                                              \
  X(extend_watchdog, 1, "in extend, other watchdog holds count the whole watchdog time")                         \
  X(extend_falls, 1, "a shorter deadline counts from the sending of extend")                                     \
  X(extend_others, 1, "extend never shortens what other holds need")                                             \
  X(late_target, 1, "the target of a request is computed when it is sent")                                       \
  X(from_send, 1, "a lease counts from sending")                                                                 \
  X(by_clock, 1, "absent after a lost answer: released only while the deadline is ahead")                        \
  X(lost_give_back, 1, "a hold lost by the local clock is given back")                                           \
  X(abandoned_give_back, 1, "an abandoned grant is given back")                                                  \
  X(abandoned_instead, 1, "an abandoned request is not repeated: a give-back goes instead")                      \
  X(grantee_left, 1, "a repeated hand-off whose grantee left becomes a release and a give-back")                 \
  X(publish, 1, "a give-back publishes")                                                                         \
  X(give_back_first, 1, "an unwanted grant is given back before the next head tries")                            \
  X(grant_ends, 1, "a grant to one owner ends the holds of the others in this client")                           \
  X(abandoned_ends, 1, "... an abandoned grant, too")                                                            \
  X(reenter_at_once, 1, "a holder never queues")                                                                 \
  X(force_once, 1, "a force-unlock is never sent again")                                                         \
  X(force_kill, 1, "its caller hears connection_lost after the KILL")                                            \
  X(dirty, 1, "a message during a try makes the head try once more")                                             \
  X(streak_dirty, 1, "a try that the end of a streak put off is made after the release")                         \
  X(gives_way, 0, "1: a head that heard a message, or comes, may let a pause go by; 2: which no timer ends")     \
  X(answer_retries, 1, "an answer makes a head try that heard a message and has not tried since")                \
  X(confirm_dirty, 1, "a confirmation during a try does, too")                                                   \
  X(dirty_passes, 1, "a message during a try that was granted passes to the next head")                          \
  X(recheck, 1, "after the confirmation the head tries")                                                         \
  X(new_head, 1, "who becomes head because the other left tries at once")                                        \
  X(told_passes, 1, "... but behind one that slept it is told what that one was")                                \
  X(resubscribe, 1, "a lost message connection subscribes anew, and the head tries")                             \
  X(hint_always, 1, "the hint timer runs, subscribed or not")                                                    \
  X(behind_local, 2, "behind a holder of this client: 0 tries, 1 later heads do not try untried, 2 nobody does") \
  X(heard_tries, 1, "... but a head that heard a message tries all the same")                                    \
  X(resolved_tries, 1, "... and so does one whose wait for an answer ended")                                     \
  X(await_confirm, 2, "an untried head: 0 tries, 1 waits for a confirmation on its way, 2 only with a hint set") \
  X(replace, 1, "an acquire takes the place of the unsent dropped release of its own owner")                     \
  X(remove_unsent, 1, "an unsent acquire whose caller gives up is removed")                                      \
  X(removed_dirty, 1, "... and what made it try counts as not yet heard")                                        \
  X(recall, 1, "an unsent try of the head becomes part of a release of its client, or goes after its answer")    \
  X(restore, 1, "... what it replaced, or was made of, comes back")                                              \
  X(sent_before, 1, "... but if it had been sent before, a give-back goes")                                      \
  X(owes, 1, "... and if a hold of its owner ended meanwhile, too")                                              \
  X(unsent_lapse, 1, "an unsent re-entry whose outer holds ended queues as a first try, behind a give-back")     \
  X(not_run_ends, 1, "an abandoned call that was not run is not sent again")                                     \
  X(ticket, 1, "a busy answer to a one-shot ends only the one-shots that came before its sending")               \
  X(resolved_proof, 1, "... and none while the name is in_doubt")                                                \
  /* run */                                                                                                      \
  X(check_self, 1, "check: a client alone never finds its own lock busy")                                        \
  X(check_false, 1, "check: a one-shot says false only if somebody had the lock, or waits for it, meanwhile")    \
  X(check_told, 1, "check: released and expired are true, a loss is one")                                        \
  X(check_strong, 1, "check: the server keeps a hold at least as long as its owner trusts it")                   \
  X(limit, 30000000, "states")                                                                                   \
  X(secs, 240, "seconds of the processor")                                                                       \
  X(first, 1, "stop at the first violation")                                                                     \
  X(verbose, 1, "print histories")                                                                               \
  X(cycles, 0, "1: look for cycles of internal steps (livelock)")                                                \
  X(walk, 0, "random walks of so many steps instead of breadth first")                                           \
  X(walks, 0, "so many walks; 0: until the time is over")                                                        \
  X(seed, 1, "of the walks")

struct options {
#define MODEL_FIELD(name, value, text) int name = value;
  MODEL_OPTIONS(MODEL_FIELD)
#undef MODEL_FIELD
};

inline options o;

inline bool set_option(std::string const& argument) {
  auto const equals = argument.find('=');
  if (equals == std::string::npos) return false;
  std::string const name = argument.substr(0, equals);
  int const value = std::atoi(argument.c_str() + equals + 1);
#define MODEL_SET(field, initial, text) \
  if (name == #field) {                 \
    o.field = value;                    \
    return true;                        \
  }
  MODEL_OPTIONS(MODEL_SET)
#undef MODEL_SET
  return false;
}

inline void print_options() {
#define MODEL_PRINT(field, initial, text) std::printf("  %-20s %-9d %s\n", #field, initial, text);
  MODEL_OPTIONS(MODEL_PRINT)
#undef MODEL_PRINT
}

// What a state of the world is. One byte per fact, no padding that could differ: states are compared as bytes.

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
  u8 queue[3], queue_n, view, dirty, timer;  // dirty: a message that no try has followed; timer 2: the end of a pause
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
