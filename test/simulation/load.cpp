#include <simulation/simulation.hpp>

#include <algorithm>
#include <cmath>

namespace latchkey::simulation {

// What a client may cost in every state of its server. Each of three connections is made anew after a pause, which
// soon is at least half of `retry_delay`, or after it was good for so long; a handshake has less than ten commands.
void simulation::set_rates() {
  double const pauses = 60'000.0 / static_cast<double>(settings_.retry_delay.count());
  double const connections = 3 * 2 * pauses;
  double const commands = 10 * connections + 60'000.0 / 20;
  most_per_minute_ = {connections, commands, 1'000 * commands};
  at_once_ = {30, 400, 600'000};
}

void simulation::spends(node& me, load::sort what, std::size_t much) {
  auto const i = static_cast<std::size_t>(what);
  me.has_sent.pass(now_, most_per_minute_);
  double& level = me.has_sent.level[i];
  level += static_cast<double>(much);
  if (level <= at_once_[i]) return;
  constexpr char const* names[] = {"connections", "commands", "bytes"};
  fail(me.id + " makes too many " + names[i] + ": more than " + std::to_string(std::lround(most_per_minute_[i])) +
           " a minute",
       eye::storm);
}

// What callers ask for, and each fault, costs something.
void simulation::forgive() {
  for (auto const& one : nodes_) {
    auto& level = one->has_sent.level;
    for (std::size_t i = 0; i < level.size(); ++i) level[i] = std::max(level[i] - at_once_[i] / 10, 0.0);
  }
}

}  // namespace latchkey::simulation
