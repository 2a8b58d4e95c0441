#pragma once

#include <support/unit/world.hpp>

#include <functional>

namespace latchkey::test {

// What moves holds from one client of a world to another.
struct transfers {
  static detail::detached detach(world& in, task& held);
  // Asks what is left of that hold, which another client was granted perhaps, and takes it up; `meanwhile`: between the
  // two.
  static task& adopting(world& in, std::uint64_t owner, task const& granted, how const& options = {},
                        std::function<void()> const& meanwhile = {});
  static task& adopt(world& in, std::uint64_t owner, task const& granted, how const& options = {},
                     std::function<void()> const& meanwhile = {}) {
    return in.await(adopting(in, owner, granted, options, meanwhile));
  }
};

}  // namespace latchkey::test
