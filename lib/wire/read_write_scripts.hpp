#pragma once

#include <wire/script.hpp>

// The scripts of the read/write lock, with the verdicts of the reentrant lock's. An item says its side by the first of
// its arguments: 0 reads, 1 writes. Every call is a pcall, so that an item fails alone, and items share no state.
namespace latchkey::detail {

script const& read_write_acquire();       // KEYS name; ARGV side, field, target, lease
script const& read_write_release();       // KEYS name; ARGV channel, side, field, target, lease of what stays
script const& read_write_renew();         // KEYS name; ARGV side, field, lease
script const& read_write_extend();        // KEYS name; ARGV side, field, lease
script const& read_write_force_unlock();  // KEYS name; ARGV channel, side

// Is there a read hold? 1 or 0. KEYS name. Short, and sent as it is.
inline constexpr char const* read_write_is_read =
    "local m = redis.call('hget', KEYS[1], 'mode') "
    "if m == 'read' or (m == 'write' and redis.call('hlen', KEYS[1]) > 2) then return 1 end return 0";

// How long a hold lasts, -1 without end, -2 if it is not there. A reader's last stamp says so; a writer's is the hash.
// KEYS name; ARGV field.
inline constexpr char const* read_write_rest =
    "local own = redis.call('hget', KEYS[1], ARGV[1]) if not own then return -2 end "
    "local name = KEYS[1] "
    "if string.sub(ARGV[1], -6) == ':write' then return redis.call('pttl', name) end "
    "if not string.find(name, '{', 1, true) then name = '{' .. name .. '}' end "
    "return redis.call('pttl', name .. ':' .. ARGV[1] .. ':rwlock_timeout:' .. own)";

}  // namespace latchkey::detail
