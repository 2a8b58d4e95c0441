#pragma once

#include <simulation/simulation.hpp>

#include <optional>
#include <string>
#include <vector>

namespace latchkey::simulation {

// How a run ended.
struct verdict_of_run {
  std::optional<std::string> broken;  // which rule; none: all is well
  eye by = eye::others;               // who saw it
  std::vector<std::uint32_t> moves;   // that were made
  moment end = 0;                     // of its moves
  std::uint64_t steps = 0;
  std::uint64_t calls = 0;
  std::vector<std::string> told;
  std::vector<std::uint32_t> step_by_step;  // see step_numbers
};

verdict_of_run play(run_options const& options, lua_scripts& scripts);

// The shortest history that was found to break the same rule.
struct shrunk {
  run_options options;
  std::vector<std::uint32_t> moves;  // options.only points here
  std::uint64_t tried = 0;
};
void shrink(run_options const& failing, lua_scripts& scripts, shrunk& out);

}  // namespace latchkey::simulation
