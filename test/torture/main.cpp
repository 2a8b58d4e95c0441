#include <torture/failovers.hpp>
#include <torture/options.hpp>
#include <torture/pauses.hpp>
#include <torture/run.hpp>
#include <torture/updates.hpp>
#include <torture/worker.hpp>

#include <cstdio>
#include <exception>

int main(int count, char** words) try {
  using namespace latchkey::torture;
  options given;
  if (auto const code = read_options(count, words, given)) return *code;
  if (given.worker && given.updates) return run_updates_worker(given);
  if (given.worker) return given.pauses ? run_pauses_worker(given) : run_worker(given);
  if (!given.check.empty()) return check_again(given);
  if (!given.show.empty()) return show(given.show);
  end_when_asked();
  if (!given.topology.empty()) return run_failovers(given);
  return given.pauses ? run_pauses(given) : run_torture(given);
} catch (std::exception const& problem) {
  std::fprintf(stderr, "latchkey_torture: %s\n", problem.what());
  return 1;
}
