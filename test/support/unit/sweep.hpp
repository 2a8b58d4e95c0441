#pragma once

#include <support/unit/world.hpp>

#include <functional>
#include <string>

namespace latchkey::test {

// A story that drives a world. Under faults its calls may end otherwise: it says world::expect where that matters.
struct scenario {
  std::function<void(world&)> play;
  std::function<config()> settings = [] { return seen_by_the_server(); };
  std::size_t clients = 1;
  std::function<void(world&)> after{};  // when all has come to rest
  world::known how = world::known::by_address;
};

// Plays it without faults, then with each link lost at every step, in every way; each run is followed by
// world::finish().
void sweep_losses(scenario const& what);
// ... with every acquire that is not done cancelled at every step.
void sweep_cancels(scenario const& what);
// ... with the whole server restarted at every step, with its data.
void sweep_restarts(scenario const& what);
// ... in a cluster of two nodes, the slot of `k` and then all slots moving to the other node at every step, and back;
// or the other node taking over.
void sweep_moves(scenario what);
// All but the moves: of what looks at the first server itself, or has channels of other slots than its name.
void sweep_one_server(scenario const& what);
// All of them.
void sweep(scenario const& what);

}  // namespace latchkey::test
