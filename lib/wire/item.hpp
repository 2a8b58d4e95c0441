#pragma once

#include <codec/reply.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

namespace latchkey::detail {

// What a client can ask about one lock in one item of a script call.
// `command`: one of the kind's own, see item::command.
enum class ask : unsigned char { none, acquire, release, hand_off, renew, extend, force_unlock, leave, command };

// What a client can ask without changing anything. `value`: the number that the name itself stands for.
// `rest`: how long the hold of this field still lasts. From `holders` on the answer is a text, as `packed` makes it:
// who holds it, who stands in its line, how many listen to its channel, how many connections the server has, and which.
enum class query : unsigned char {
  is_locked,
  is_held_by,
  hold_count,
  time_to_live,
  token,
  value,
  rest,
  holders,
  line,
  listeners,
  clients,
  connections
};
constexpr bool has_text(query what) { return what >= query::holders; }

// One item: which lock, which field, and what to make of it. Times to live are milliseconds.
struct item {
  ask what = ask::none;
  unsigned char mode = 0;       // of a kind with several modes (read, write); 0 otherwise
  std::string_view name{};      // of the lock
  std::string_view field{};     // whose hold
  std::string_view to_field{};  // hand_off: who gets it
  bool bundled = false;         // acquire: asked by the script of `kind::acquire_all`
  std::int64_t target = 0;      // acquire, release: the hold count to reach
  // Milliseconds: acquire, hand_off: of the new hold (0: it has none); release: of what stays; renew, extend, command.
  std::int64_t lease = 0;
  std::int64_t wait = 0;  // acquire: how long the caller still waits, milliseconds
  // Of kinds whose waiters stand in a queue on the server. acquire, hand_off, leave: how long the waiter, being first
  // and silent, is taken for alive, milliseconds; the same in both.
  std::int64_t line_time = 0;
  bool enters_line = false;     // acquire, hand_off: if it is busy, it enters a queue, or keeps its place, or claims
  unsigned char command = 0;    // command: which; the kind numbers them
  std::int64_t amount = 1;      // acquire: of how many; command: as it likes
  std::string_view argument{};  // acquire, command: as it likes
  bool repeated = false;        // an earlier copy had no answer, and can no longer run
};

// What is said of a grant or an extension that is `unsynced`, if the server itself said nothing.
inline constexpr std::string_view too_few_replicas = "too few replicas have confirmed it";

// What the server's answer to one item means.
struct outcome {
  enum class type : unsigned char {
    granted,     // acquire, hand_off: held now
    busy,        // acquire, hand_off: somebody else has it; see hint
    untried,     // acquire: the one of its bundle that was busy or refused kept it from being tried
    gone,        // acquire above 1: the outer holds are not there, nothing was written
    released,    // release to 0, force_unlock: it was there
    still_held,  // release above 0: done
    absent,      // release, extend, renew, force_unlock: no such hold
    extended,    // renew, extend: done
    refused,     // this item did nothing; text says why
    done,        // command: see value
    unseen,      // of what was repeated, or is given back: it did not run, if the server still remembers that time
    malformed,   // an answer that no script of ours gives
  };

  type what = type::malformed;
  bool not_published = false;  // released, but PUBLISH was refused: nobody was told
  int listeners = 0;           // released: so many clients heard of it, if that was counted
  bool unsynced = false;       // granted, extended: too few replicas have it
  bool spent = false;          // granted: the next waiter would be told busy; see hint
  std::int64_t hint = 0;       // busy: milliseconds until the holder's lease ends; -1: it never does
  std::int64_t value = 0;      // done: the answer
  std::uint64_t token = 0;     // granted: fencing token, 0 if the kind has none
  std::string text{};          // refused, unsynced: the server's words

  // hand_off answers twice: what became of the old hold (`what` released or absent) and of the new one.
  type grant = type::malformed;
};

// What the elements of a script's answer mean. A busy lock answers its PTTL, which is -2 or more: no verdict can be
// taken for one.
enum class verdict : std::int64_t {
  granted = -3,
  gone = -4,
  released = -5,
  released_unpublished = -6,
  still_held = -7,
  absent = -8,
  extended = -9,
  untried = -10,
  unseen = -11,
  released_to_none = -1'000,  // and below: released, and by so much less, so many heard of it
};

inline bool says(reply const& element, verdict what) {
  return element.is_integer() && element.integer == static_cast<std::int64_t>(what);
}

// Was it released, and who heard of that?
inline void read_released(reply const& element, outcome& made) {
  constexpr auto none = static_cast<std::int64_t>(verdict::released_to_none);
  bool const counted = element.is_integer() && element.integer <= none;
  if (counted) made.listeners = static_cast<int>(std::min<std::int64_t>(none - element.integer, 1'000));
  made.not_published = says(element, verdict::released_unpublished);
  if (counted || made.not_published || says(element, verdict::released)) made.what = outcome::type::released;
}

// A text in the place of a number is an error that concerns this item alone.
inline bool is_refusal(reply const& element) { return element.is_error() || element.kind == reply::type::string; }

// The server's words, without the line end that some versions leave there.
inline std::string refusal_of(reply const& element) {
  auto text = element.text;
  while (text.ends_with('\n') || text.ends_with('\r')) text.pop_back();
  return text;
}

inline outcome refused_by(reply const& element) {
  constexpr auto refused = outcome::type::refused;
  return {.what = refused, .text = refusal_of(element), .grant = refused};
}

// A time to live as hint: -1 for ever, and -2 (gone meanwhile) as 0. False: no server with a clock answers that.
inline bool read_hint(reply const& element, std::int64_t& hint) {
  // A time to live is counted from now, and all clocks of servers show far more than this, in milliseconds.
  constexpr std::int64_t least_clock = 1'000'000'000'000;
  if (!element.is_integer() || element.integer < -2) return false;
  if (element.integer > std::numeric_limits<std::int64_t>::max() - least_clock) return false;
  hint = element.integer == -2 ? 0 : element.integer;
  return true;
}

}  // namespace latchkey::detail
