#pragma once

#include <support/exclusive_kinds.hpp>
#include <sweeps/uses.hpp>

namespace latchkey::test {

// Locks of one name: those that one owner holds at a time, a reader's, and a majority on one server.
inline std::vector<exclusive_kind> const& lock_kinds() {
  static auto const all = [] {
    using text = std::string const&;
    std::vector<exclusive_kind> made;
    for (auto const& one : exclusive_kinds())
      if (one.servers == 1) made.push_back(one);
    made.push_back(
        {"read_lock", 1, [](clients const& c, text name) { return c[0].get_read_write_lock(name).read_lock(); }});
    made.push_back({"red_lock", 1, [](clients const& c, text name) {
                      return c[0].get_red_lock(
                          {c[0].get_lock(name), c[0].get_lock(name + " too"), c[0].get_lock(name + " as well")});
                    }});
    return made;
  }();
  return all;
}

}  // namespace latchkey::test
