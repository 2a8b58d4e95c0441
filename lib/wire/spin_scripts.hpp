#pragma once

#include <wire/script.hpp>

// The scripts of the spin lock where they differ from the reentrant lock's: they tell nobody. See
// reentrant_scripts.hpp.
namespace latchkey::detail {

script const& spin_release();       // KEYS name; ARGV field, target, lease of what stays
script const& spin_hand_off();      // KEYS name; ARGV from, to, lease; answers {old, new} per item
script const& spin_force_unlock();  // KEYS name

}  // namespace latchkey::detail
