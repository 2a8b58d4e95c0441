#pragma once

#include <wire/script.hpp>

// The scripts of the semaphore: lists of items, as those of the reentrant lock. `mark` is the key by which a repeated
// request (`again` is 1) learns whether its earlier copy ran; it lives for `keep` milliseconds.
namespace latchkey::detail {

script const& semaphore_acquire();    // KEYS name, claim, mark; ARGV channel, client, permits, waits, again, keep
script const& semaphore_give_back();  // KEYS name, mark of the acquire; ARGV channel, keep
// KEYS name, mark; ARGV channel (not drain), permits, again, keep; answers {value, told} per item
script const& semaphore_release();
script const& semaphore_add();
script const& semaphore_drain();
script const& semaphore_try_set();

}  // namespace latchkey::detail
