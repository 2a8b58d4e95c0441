#pragma once

#include <latchkey/latchkey.hpp>

#include <string>
#include <string_view>

namespace latchkey::tool {

// Of this kind, as --kind and tokens name it; any other word is the reentrant lock.
distributed_lock lock_of(client const& from, std::string_view kind, std::string const& name);

// What the UUIDs of clients begin with whose holds were taken by hand.
inline constexpr std::string_view by_hand = "6c6b6579";
std::string hand_made_id();

// What a call waits for, after "waiting for".
std::string end_of_others(std::string_view kind, std::string_view name);
// `words`: what is known of the server; or empty.
std::string an_answer_about(std::string_view name, std::string_view words);

}  // namespace latchkey::tool
