#pragma once

#include <support/unit/world.hpp>

#include <string>
#include <vector>

namespace latchkey::test {

// Calls of a lock of several members, which start in one step. With `direct` their caller is blocked, and may borrow
// the lane for them.
struct bundles {
  using tasks = std::vector<task*>;

  // A bundle of one try each, for the owner of that number.
  static tasks once(world& in, std::vector<std::string> const& names, how options = {}, std::uint64_t number = 7,
                    std::uint64_t owner = 1);
  static tasks release(world& in, tasks const& held, bool direct = false);

  static tasks granted(world& in, tasks all);
  static tasks held(tasks const& all);  // those of them that were granted
  static tasks await(world& in, tasks all);

 private:
  static void start(world& in, tasks const& all, bool direct);
};

}  // namespace latchkey::test
