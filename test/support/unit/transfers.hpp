#pragma once

#include <support/unit/world.hpp>

#include <functional>

namespace latchkey::test {

// What moves holds from one client of a world to another.
struct transfers {
  static detail::detached detach(world& in, task& held);
  // By which field the server shows it.
  static std::string shown_field(world& in, task const& held);
  // Asks what is left of that hold, which another client was granted perhaps.
  static task& ask(world& in, task const& granted, std::size_t client);
  // Takes up what that has found.
  static task& take_up(world& in, std::uint64_t owner, task const& granted, task const& asked);
  // The one and the other; `meanwhile`: between the two.
  static task& adopting(world& in, std::uint64_t owner, task const& granted, how const& options = {},
                        std::function<void()> const& meanwhile = {});
  static task& adopt(world& in, std::uint64_t owner, task const& granted, how const& options = {},
                     std::function<void()> const& meanwhile = {}) {
    return in.await(adopting(in, owner, granted, options, meanwhile));
  }
};

}  // namespace latchkey::test
