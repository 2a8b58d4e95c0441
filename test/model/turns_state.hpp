#pragma once
// The world of the model of local turns: one name on one server, two clients of it.

#include <algorithm>
#include <cstdint>
#include <string>

#include "turns_rules.hpp"

using u8 = std::uint8_t;

inline constexpr int most_owners = 3, most_holds = 2, most_late = 3, most_fields = 8;
inline constexpr int stand_in = 3;  // for a reader whose own number another one of its client uses
inline constexpr u8 nobody = 15, not_known = 7, saturated = 7;

// make_it: a confirmation that says the count. hand_off: to the owner `count`.
enum turns_what : u8 { nothing, acquire, make_it, release, renew, force, read_acquire, read_release, hand_off };
enum turns_place : u8 { nowhere, outbox, sent, answered, unsettled };
enum turns_answer : u8 { silent, done, busy, absent, not_run };
enum turns_mark : u8 { repeated = 1, abandoned = 2, speaks = 4, after_full = 8, for_member = 16, outlives = 32 };

inline u8 later(u8 time) { return time < saturated ? u8(time + 1) : time; }

// What was left in a connection that is given up, or a request's content.
struct turns_order {
  u8 what, by, count, lease;
};

// The one request of the name. Its first sending counts for the streak, its last one for the deadline.
struct turns_request {
  turns_order order;
  u8 where, says, hint, marks, age, first_age;

  bool has(turns_mark one) const { return (marks & one) != 0; }
};

// Beside it: what raises the tenure's time and shows that it is there.
struct turns_renewal {
  u8 where, by, lease, says, age;
  u8 of_tenure;  // sent in the tenure that lasts
  u8 speaks;     // of all that this client believes now
};

// What the server shows for this client, and who has it in truth.
struct turns_tenure {
  u8 lasts, field, shown, trusted, age, turns, doubted, member;
  u8 last;                             // who holds it, or held it last
  u8 holder, left[most_holds], fixed;  // what is left of its holds; bits: a fixed lease
  // What the client cannot see: the server has it no more, since when and by whom; what was done since.
  u8 gone, gone_by, gone_heard, gone_turn;

  int live() const { return (left[0] > 0) + (left[1] > 0); }
  int longest() const { return std::max(left[0], left[1]); }
  bool vacant() const { return lasts && holder == nobody; }
  bool watched() const { return (left[0] && !(fixed & 1)) || (left[1] && !(fixed & 2)); }
  void end_hold(int i) {
    if (i == 0) left[0] = left[1], fixed = u8(fixed >> 1);
    left[1] = 0, fixed &= 1;
    if (live() == 0) holder = nobody, fixed = 0;
  }
};

enum turns_gone_by : u8 { by_others, by_itself, by_itself_known };
enum turns_pause : u8 { no_pause, pause_due, pausing };

// A try through another kind of the same name: it shares the server's data and the client, and nothing else.
struct turns_other_kind {
  u8 where, by, says, left, held, gives_back, gone;
};

// What a grantee who left may have of a hand-off goes back beside the release that the hand-off was.
struct turns_back {
  u8 where, by, says;
};

// What one owner reads, in the field `by`, and the request for that. A tenure's holder has this or the name's one.
struct turns_read {
  turns_order order;
  u8 where, says, marks, age;
  u8 left, by, gone, owes;  // owes: what the server has of it is given back when the request is answered

  bool has(turns_mark one) const { return (marks & one) != 0; }
  bool any() const { return left > 0 || where != nowhere; }
};

struct turns_client {
  turns_tenure tenure;
  turns_request ask;
  turns_renewal beside;
  turns_other_kind other;
  u8 forcing;  // a force-unlock's place
  turns_order late[most_late];
  u8 late_count, kills;
  u8 queue[most_owners], queued, want[most_owners], want_member, calls[most_owners];
  u8 tried, heard, hint, subscribed, message, pause;  // subscribed: 1 asked, 2 confirmed
  u8 reenters, reenter_lease, reenter_member;         // an owner plus one: waits for the server's word
  u8 closed, discards, cancels;
  turns_read read[most_owners];
  u8 want_read, reads[most_owners];
  turns_back back;
  u8 run, run_age;    // turns and hand-offs since it was free for others, and the time since the first of them
  u8 borrower, lent;  // who stands under another one's number, plus one, and whose number that is

  bool waits(int owner) const { return std::find(queue, queue + queued, owner) != queue + queued; }
  bool has_late_room(int more) const { return late_count + more <= most_late; }
};

struct turns_server {
  u8 holder, count, ttl, age, turns, expired;  // holder: a field, see field_of; age and turns: of its streak
  u8 run_age;                                  // since the first of these turns

  u8 readers[most_fields];  // zero: it does not read; else one more than what is left of its stamp

  void clear(bool by_clock) { *this = {0, 0, 0, 0, 0, u8(by_clock), 0, {}}; }
  bool read() const {
    return std::any_of(readers, readers + most_fields, [](u8 one) { return one > 0; });
  }
  u8 longest_read() const { return u8(std::max<int>(*std::max_element(readers, readers + most_fields), 1) - 1); }
};

struct turns_world {
  turns_server server;
  u8 broken;  // an index of `violations`: what a step has done
  u8 own_forces, foreign_forces, vanishes, not_runs, message_losses, others;
  turns_client clients[2];
};

enum turns_violation : u8 {
  fine,
  self_busy,
  late_turn,
  stale_answer,
  stale_message,
  stale_bound,
  false_loss,
  not_told,
  vote,
  dishonest,
  field_decides,
  handed_to_itself
};
inline constexpr char const* violations[] = {
    nullptr,
    "SELF-BUSY: a client finds its own lock busy",
    "STREAK: a turn after its bound, by the server's clock and count",
    "STALE: a turn after the answer to the client's own force-unlock",
    "STALE: a turn after the message of a foreign force-unlock",
    "STALE: a turn begins on what has been gone for longer than a streak lasts",
    "FALSE LOSS: told of a loss, and the server has it",
    "NOT TOLD: the tenure is gone and its holder goes on",
    "VOTE: a member counts a server that does not have it",
    "DISHONEST: a joint lock was released, and the server still has its member",
    "EXCLUSION: the owner whom the server shows comes in beside the holder",
    "FORGOTTEN: handed to the owner of the field that goes: granted, and the server shows nothing",
};

// --- names and times ---

inline u8 field_of(int client, int owner) { return u8(1 + 4 * client + owner); }
inline int client_of(u8 field) { return (field - 1) / 4; }
inline int owners_of(int client) { return client == 0 ? sizes.owners0 : sizes.owners1; }
inline bool local(int client) { return (client == 0 ? sizes.local0 : sizes.local1) != 0; }
inline bool counts(int client) { return (client == 0 ? sizes.counts0 : sizes.counts1) != 0; }
inline int lease_of(int kind) { return kind == 0 ? sizes.watchdog : kind == 1 ? 1 : sizes.watchdog + 1; }
inline bool is_fixed(int lease) { return lease != sizes.watchdog; }
// A fixed lease asks for the time of a streak beyond itself: rule 7.
inline u8 asked_for(int lease) { return u8(is_fixed(lease) ? lease + sizes.max_time : lease); }

inline std::string name_of(int client, int owner) { return std::string(1, (client == 0 ? "abc?" : "xyz?")[owner & 3]); }
inline std::string words(int client, turns_order const& o) {
  static char const* const names[] = {"nothing",      "acquire",      "make-it",      "release", "renewal",
                                      "force-unlock", "read-acquire", "read-release", "hand-off"};
  if (o.what == force) return names[o.what];
  std::string out = std::string(names[o.what]) + "(" + name_of(client, o.by);
  if (o.what == make_it) out += " " + std::to_string(o.count);
  if (o.what == hand_off) out += " to " + name_of(client, o.count);
  if (o.lease) out += ", " + std::to_string(o.lease);
  return out + ")";
}
inline char const* words(u8 answer) {
  return answer == done ? "done" : answer == busy ? "busy" : answer == absent ? "absent" : "not run";
}
