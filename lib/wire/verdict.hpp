#pragma once

#include <algorithm>
#include <codec/reply.hpp>
#include <cstdint>
#include <limits>
#include <wire/item.hpp>

namespace latchkey::detail {

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
