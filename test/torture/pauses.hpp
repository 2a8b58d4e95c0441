#pragma once

#include <torture/options.hpp>

#include <string>

namespace latchkey::torture {

// Read, wait, write a set of numbers in a store, as Jepsen's lock-set does, while processes are stopped; side by side
// with three ways to guard the write. Prints how many acknowledged updates the set lost; gives the exit code.
int run_pauses(options const& run);
// A process of it.
int run_pauses_worker(options const& run);

// What stands between a holder and a write that comes too late.
enum class guard { bare, lost, token };

constexpr int sets = 8;  // at a time for each guard, so that a run has many updates

inline std::string set_name(guard how, int set) {
  char const* const names[] = {"bare", "lost", "token"};
  return std::string(names[static_cast<int>(how)]) + "-" + std::to_string(set);
}

}  // namespace latchkey::torture
