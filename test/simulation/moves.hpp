#pragma once

#include <simulation/clocks.hpp>
#include <simulation/randomness.hpp>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace latchkey::simulation {

// What happens from outside: what callers ask for, and what goes wrong.
enum class deed : unsigned char {
  // callers
  acquire,
  try_once,
  release,
  drop,
  unlock,
  extend,
  query,
  force_unlock,
  cancel,
  close,
  // faults of connections
  cut,
  silence,
  hold_up,
  refuse_connections,
  // faults of processes
  pause_client,
  stop_borrower,
  crash_client,
  // faults of the server
  stall_server,
  load,
  refuse_writes,
  fill_memory,
  run_long_script,
  flush_scripts,
  restart,
  restart_empty,
  lose_message,
  double_message,
  // others
  stranger_takes,
  stranger_releases,
  stranger_forces,
  remove_key,
  refuse_kill,
  sicken,
};
inline constexpr std::size_t deeds = static_cast<std::size_t>(deed::sicken) + 1;

char const* name_of(deed what);

struct move {
  deed what;
  std::uint32_t number;  // in the plan
  moment at;
  std::uint64_t random;  // everything else about it

  dice chances() const { return dice(random); }
};

// The moves of one seed, one after the other and without end. A move is the same whether others are left out or not.
class plan {
 public:
  explicit plan(std::uint64_t seed);
  move next();

 private:
  std::uint64_t const seed_;
  std::uint32_t number_ = 0;
  moment at_ = 0;
  std::array<unsigned, deeds> weights_{};
  unsigned total_ = 0;
  unsigned haste_ = 0;
};

}  // namespace latchkey::simulation
