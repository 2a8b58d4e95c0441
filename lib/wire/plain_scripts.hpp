#pragma once

#include <wire/script.hpp>

// The scripts of the plain lock: a string whose value names the holder. Keys, arguments and answers as in
// reentrant_scripts.hpp; the field is the value, and there is no count.
namespace latchkey::detail {

script const& plain_acquire();
script const& plain_release();
script const& plain_hand_off();
script const& plain_renew();
script const& plain_extend();
script const& plain_force_unlock();
script const& plain_is_held_by();  // KEYS name; ARGV value; answers 0 or 1, alone
script const& plain_rest();        // the same; answers milliseconds, -1 without end, -2 if it is not there

}  // namespace latchkey::detail
