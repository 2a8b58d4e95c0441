// Measures latchkey beside bare clients, group by group. scripts/bench runs it and prints the table.
#include <common/machine_state.hpp>
#include <suite/options.hpp>

#include <algorithm>
#include <cstdio>
#include <fstream>

namespace {

using namespace bench;

void save(results const& found, std::string const& file_name) {
  std::ofstream file(file_name);
  file << found.to_json();
  file.close();
  if (!file) throw std::runtime_error("cannot write " + file_name);
}

int run(suite_options const& wanted) {
  results found;
  found.machine = describe_machine();
  found.rounds = wanted.rounds;
  std::printf("Machine: %s.\n", found.machine.c_str());
#ifndef NDEBUG
  std::printf("Not a release build: times say nothing.\n");
#endif
  for (auto const& one : all_groups()) {
    if (!wanted.only.empty() && std::find(wanted.only.begin(), wanted.only.end(), &one) == wanted.only.end()) continue;
    try {
      stage on(std::string(one.name), wanted.rounds, found);
      one.run(on);
    } catch (std::exception const& problem) {
      // The other groups are worth having all the same.
      std::fprintf(stderr, "suite: %s: %s\n", std::string(one.name).c_str(), problem.what());
      found.rows.push_back({.group = std::string(one.name), .name = "all rows", .missing = problem.what()});
    }
    if (!wanted.json.empty()) save(found, wanted.json);
  }
  bool const missed = std::any_of(found.rows.begin(), found.rows.end(), [](auto const& one) {
    return one.verdict() == "MISSED" || (one.name == "all rows" && !one.missing.empty());
  });
  return missed ? 1 : 0;
}

}  // namespace

int main(int count, char** words) {
  try {
    suite_options wanted;
    if (auto const code = read_options(count, words, wanted)) return *code;
    return run(wanted);
  } catch (std::exception const& problem) {
    std::fprintf(stderr, "suite: %s\n", problem.what());
    return 1;
  }
}
