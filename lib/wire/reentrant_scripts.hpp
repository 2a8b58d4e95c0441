#pragma once

#include <wire/script.hpp>

// The scripts of the reentrant lock. Each takes a list of items and answers an array with one element per item: a
// `verdict`, a time to live, or the text of the error that this item met. Every call is a pcall, so that an item
// fails alone, and items share no state. The order of steps is that of docs/safety.md.
namespace latchkey::detail {

script const& reentrant_acquire();       // KEYS name; ARGV field, target, lease
script const& reentrant_acquire_all();   // the same, and all or none: what is not granted for another's sake is untried
script const& reentrant_release();       // KEYS name; ARGV channel, field, target, lease of what stays
script const& reentrant_hand_off();      // KEYS name; ARGV channel, from, to, lease; answers {old, new} per item
script const& reentrant_renew();         // KEYS name; ARGV field, lease
script const& reentrant_extend();        // KEYS name; ARGV field, lease
script const& reentrant_force_unlock();  // KEYS name; ARGV channel

// Those of the spin lock, where they differ: they tell nobody, and have no channel.
script const& spin_release();
script const& spin_hand_off();
script const& spin_force_unlock();

}  // namespace latchkey::detail
