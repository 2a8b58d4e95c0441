#pragma once

#include <support/unit/world.hpp>

#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <vector>

namespace latchkey::test {

// Holds that clients of a walk pass on to each other.
class adoptions {
 public:
  adoptions(world& in, detail::kind const& which, std::span<char const* const> names, std::size_t clients)
      : w_(in), kind_(which), names_(names), clients_(clients) {}

  // Acquires, detaches, or asks after what was detached. The owners are their own: one that comes back to what it has
  // detached would hold it beside the next one.
  void call();
  // What the server still showed when it was asked, which may be long ago.
  void take_up();

 private:
  struct question {
    task const* origin;  // that was granted it
    task const* asked;
  };

  void detach(task& held);

  static constexpr std::uint64_t first_owner = 100;

  world& w_;
  detail::kind const& kind_;
  std::span<char const* const> const names_;
  std::size_t const clients_;
  std::uint64_t last_owner_ = first_owner;
  std::vector<task const*> detached_;  // by their origins
  std::deque<question> asking_;
  std::map<task const*, task const*> origins_;
};

}  // namespace latchkey::test
