#pragma once

#include <support/unit/stories.hpp>

#include <cstddef>
#include <vector>

namespace latchkey::test {

inline std::vector<how> kinds_with_turns() {
  std::vector<how> made;
  for (auto const* which :
       {&detail::reentrant_kind(), &detail::non_reentrant_kind(), &detail::spin_kind(), &detail::plain_kind()})
    made.push_back({.which = which});
  return made;
}

inline std::size_t asked(world const& w) { return w.server.ran("EVALSHA") + w.server.ran("EVAL "); }

}  // namespace latchkey::test
