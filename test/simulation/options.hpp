#pragma once

#include <simulation/simulation.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace latchkey::simulation {

// The command line of the program.
struct options {
  std::uint64_t seeds = 1'000;
  double minutes = 0;  // 0: by the number of seeds
  std::uint64_t seed = 1;
  std::vector<simulated_kind const*> kinds;
  std::size_t clients = 0;
  unsigned steps = 200;
  bool shrink = false;
  bool trace = false;
  bool drift = true, jitter = true, split = true;
  bool turns = true;
  std::optional<std::vector<std::uint32_t>> only;
  moment until = endless;
  std::string record, compare;  // folders; empty: neither
};

// Prints help, or what is wrong, and gives the exit code then.
std::optional<int> read_options(int count, char const* const* words, options& out);

// What one run of these options is. It points to `from`.
run_options run_of(options const& from, simulated_kind const& kind, std::uint64_t seed);
// The command that makes exactly this run again.
std::string command_for(run_options const& run);

}  // namespace latchkey::simulation
