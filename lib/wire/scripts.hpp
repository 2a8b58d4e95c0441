#pragma once

#include <wire/script.hpp>

namespace latchkey::detail {

// The scripts of the reentrant lock. Each takes a list of items and answers an array with one element per item: a
// `verdict`, a time to live, or the text of the error that this item met. Every call is a pcall, so that an item
// fails alone, and items share no state. The order of steps is that of docs/safety.md.

extern lazy_script const reentrant_acquire;  // KEYS name; ARGV field, target, lease
// The same, and all or none: what is not granted for another's sake is untried.
extern lazy_script const reentrant_acquire_all;
extern lazy_script const reentrant_release;   // KEYS name; ARGV channel, field, target, lease of what stays
extern lazy_script const reentrant_hand_off;  // KEYS name; ARGV channel, from, to, lease; answers {old, new} per item
extern lazy_script const reentrant_renew;     // KEYS name; ARGV field, lease
extern lazy_script const reentrant_extend;    // KEYS name; ARGV field, lease
extern lazy_script const reentrant_force_unlock;  // KEYS name; ARGV channel

// Those of the spin lock, where they differ: they tell nobody, and have no channel.
extern lazy_script const spin_release, spin_hand_off, spin_force_unlock;

// The scripts of the fenced lock where they differ from the reentrant lock's: a grant is answered {-3, token}, the
// token as text, since a number of Lua is exact up to 2^53 only.

extern lazy_script const fenced_acquire;  // KEYS name, counter; ARGV field, target, lease, seeded
// KEYS name, counter; ARGV channel, from, to, lease, seeded; answers {old, new}.
extern lazy_script const fenced_hand_off;

// The scripts of the plain lock: a string whose value names the holder. Keys, arguments and answers as those
// of the reentrant lock; the field is the value, and there is no count.

extern lazy_script const plain_acquire, plain_release, plain_hand_off, plain_renew, plain_extend, plain_force_unlock;
extern lazy_script const plain_is_held_by;  // KEYS name; ARGV value; answers 0 or 1, alone
extern lazy_script const plain_rest;        // the same; answers milliseconds, -1 without end, -2 if it is not there

// The scripts of the read/write lock, with the verdicts of the reentrant lock's. An item says its mode by the first of
// its arguments: 0 reads, 1 writes. Every call is a pcall, so that an item fails alone, and items share no state.

extern lazy_script const read_write_acquire;       // KEYS name; ARGV mode, field, target, lease
extern lazy_script const read_write_release;       // KEYS name; ARGV channel, mode, field, target, lease of what stays
extern lazy_script const read_write_renew;         // KEYS name; ARGV mode, field, lease
extern lazy_script const read_write_extend;        // KEYS name; ARGV mode, field, lease
extern lazy_script const read_write_force_unlock;  // KEYS name; ARGV channel, mode

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

// The scripts of the fair lock. Each item has three KEYS - the lock's name, the list of waiters, the zset of their
// scores -, begins its ARGV with the channel without its owner, and answers as the reentrant lock's items do.

extern lazy_script const fair_acquire;  // ARGV field, target, lease, line time, 1: enters the queue
extern lazy_script const fair_release;  // ARGV field, target, lease of what stays
// ARGV from, to, lease, line time of the new owner, 1: enters; answers {old, new}.
extern lazy_script const fair_hand_off;
extern lazy_script const fair_force_unlock;  // no more ARGV
extern lazy_script const fair_leave;         // ARGV field, line time

// The scripts of the semaphore: lists of items, as those of the reentrant lock. `mark` is the key by which a repeated
// request (`again` is 1) learns whether its earlier copy ran; it lives for `keep` milliseconds.

// KEYS name, claim, mark; ARGV channel, client, permits, waits, again, keep.
extern lazy_script const semaphore_acquire;
extern lazy_script const semaphore_leave;      // KEYS name, claim; ARGV channel, client
extern lazy_script const semaphore_give_back;  // KEYS name, mark of the acquire; ARGV channel, keep
// KEYS name, mark; ARGV channel (not drain), permits, again, keep; answers {value, told} per item
extern lazy_script const semaphore_release, semaphore_add, semaphore_drain, semaphore_try_set;

// The scripts of the permit semaphore: lists of items, as those of the reentrant lock. KEYS are name and
// timeouts, and the first of the ARGV is the channel. Times are the server's. Every script first takes back the permits
// whose leases have ended.

extern lazy_script const permit_acquire;  // ARGV id, lease (0: none)
extern lazy_script const permit_release;  // ARGV id
extern lazy_script const permit_extend;   // ARGV id, lease
// Commands: ARGV argument, amount, lease, again, keep; answer {value, told} per item. The third of the KEYS is the mark
// of the request, unless it changes no number.
extern lazy_script const permit_try_release, permit_update, permit_try_set, permit_set, permit_add, permit_available,
    permit_acquired;

}  // namespace latchkey::detail
