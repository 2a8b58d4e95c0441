#pragma once

#include <base/instant.hpp>
#include <latchkey/error.hpp>

namespace latchkey::detail::scout_rounds {

// nothing: nobody needs a server. watch: who has the names may change. press: somebody who has them is missing.
enum class need : unsigned char { nothing, watch, press };

// In a round scouts ask one after the other, until an answer can be used.
inline constexpr milliseconds soon{100};         // between two rounds, at least
inline constexpr milliseconds without_one{200};  // between rounds while a server is missing
inline constexpr milliseconds most{1'000};       // between rounds in which nobody knew better

// Of two failures of a round the one that says more: an answer more than none.
inline int weight(error_code const& why) {
  if (why == errc::no_master) return 3;
  if (!why) return 0;
  return why == errc::connect_failed ? 1 : 2;
}

}  // namespace latchkey::detail::scout_rounds
