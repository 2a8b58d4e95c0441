#pragma once

#include <wire/kinds.hpp>

#include <array>
#include <stdexcept>

namespace latchkey::fuzz {

// A kind, and how many commands of its own it has.
struct known_kind {
  detail::kind const* which;
  unsigned char commands;
};

inline std::array<known_kind, 11> const& every_kind() {
  using namespace detail;
  static std::array<known_kind, 11> const all{{{&reentrant_kind(), 0},
                                               {&fair_kind(), 0},
                                               {&read_write_kind(), 0},
                                               {&semaphore_kind(), 4},
                                               {&permit_semaphore_kind(), 7},
                                               {&count_down_latch_kind(), 2},
                                               {&fenced_kind(), 0},
                                               {&plain_kind(), 0},
                                               {&spin_kind(), 0},
                                               {&non_reentrant_kind(), 0},
                                               {&seeded_fenced_kind(), 0}}};
  return all;
}

// Does the kind ever ask for that?
inline bool has(known_kind const& one, detail::ask what) {
  if (what == detail::ask::none) return false;
  if (what == detail::ask::command) return one.commands > 0;
  try {
    one.which->script_for(what);
    return true;
  } catch (std::logic_error const&) {
    return false;
  }
}

}  // namespace latchkey::fuzz
