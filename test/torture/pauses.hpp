#pragma once

#include <torture/options.hpp>

namespace latchkey::torture {

// Read, wait, write a set of numbers in a store, as Jepsen's lock-set does, while processes are stopped; side by side
// with three ways to guard the write. Prints how many acknowledged updates the set lost; gives the exit code.
int run_pauses(options const& run);
// A process of it.
int run_pauses_worker(options const& run);

}  // namespace latchkey::torture
