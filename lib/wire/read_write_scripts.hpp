#pragma once

#include <wire/script.hpp>

// The scripts of the read/write lock, with the verdicts of the reentrant lock's. An item says its side by the first of
// its arguments: 0 reads, 1 writes. Every call is a pcall, so that an item fails alone, and items share no state.
namespace latchkey::detail {

script const& read_write_acquire();       // KEYS name; ARGV side, field, target, lease
script const& read_write_release();       // KEYS name, channel; ARGV side, field, target, lease of what stays
script const& read_write_renew();         // KEYS name; ARGV side, field, lease
script const& read_write_extend();        // KEYS name; ARGV side, field, lease
script const& read_write_force_unlock();  // KEYS name, channel; ARGV side

// Is there a read hold? 1 or 0. KEYS name. Short, and sent as it is.
inline constexpr char const* read_write_is_read =
    "local m = redis.call('hget', KEYS[1], 'mode') "
    "if m == 'read' or (m == 'write' and redis.call('hlen', KEYS[1]) > 2) then return 1 end return 0";

}  // namespace latchkey::detail
