#pragma once

#include <simulation/options.hpp>
#include <simulation/simulation.hpp>

#include <cstdint>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

namespace latchkey::simulation {

// The steps of many runs in a folder, as numbers. Code that only moves leaves them as they are.
class trace_writer {
 public:
  // Throws std::runtime_error if the folder cannot be written.
  trace_writer(std::string const& folder, options const& runs);
  void add(std::vector<std::uint32_t> const& steps);
  // Throws std::runtime_error if something could not be written.
  void close();

 private:
  std::string path_;
  std::ofstream out_;
};

class trace_reader {
 public:
  // Throws std::runtime_error if there is no trace.
  explicit trace_reader(std::string const& folder);

  // Sets which runs were recorded: seeds, kinds, clients, steps, what chance decides.
  void read_runs(options& out) const;
  // Compares the next run: the first step that differs, from 1. Throws std::runtime_error at the end of the file.
  std::optional<std::size_t> first_difference(std::vector<std::uint32_t> const& steps);

 private:
  std::string path_, runs_;
  std::ifstream in_;
};

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
