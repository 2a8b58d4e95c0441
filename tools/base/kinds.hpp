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

}  // namespace latchkey::tool
