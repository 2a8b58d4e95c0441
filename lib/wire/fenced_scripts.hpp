#pragma once

#include <wire/script.hpp>

// The scripts of the fenced lock where they differ from the reentrant lock's: a grant is answered {-3, token}, the
// token as text, since a number of Lua is exact up to 2^53 only. See reentrant_scripts.hpp.
namespace latchkey::detail {

script const& fenced_acquire();   // KEYS name, counter; ARGV field, target, lease, seeded
script const& fenced_hand_off();  // KEYS name, counter; ARGV channel, from, to, lease, seeded; answers {old, new}

}  // namespace latchkey::detail
