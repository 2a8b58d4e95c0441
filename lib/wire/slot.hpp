#pragma once

#include <cstdint>
#include <string_view>

// Where names stand in a Redis Cluster, by the server's rule, which is not Redisson's rule for derived names
// (kind.hpp).
namespace latchkey::detail {

inline constexpr int slot_count = 16'384;

// What the server makes the slot of: the hash tag, which stands between the first `{` and the first `}` behind it; all
// of the key if there is no such tag or it is empty. Redis: keyHashSlot.
std::string_view hashed_part(std::string_view key);

// 0 to 16383: CRC16 of the hashed part (polynomial 0x1021, from zero), modulo 16384. Redis: CLUSTER KEYSLOT.
std::uint16_t slot_of(std::string_view key);

}  // namespace latchkey::detail
