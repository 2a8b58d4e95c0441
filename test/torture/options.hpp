#pragma once

#include <latchkey/config.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace latchkey::torture {

enum class broken { not_at_all, early, ignore, slow };

// The command line of the program.
struct options {
  double minutes = 1;
  std::vector<std::uint8_t> kinds;
  int processes = 4;
  std::vector<std::string> nemeses;
  std::uint64_t seed = 1;
  milliseconds lease{1'000};
  torture::broken broken = torture::broken::not_at_all;
  bool keep = false;
  std::string check, show;  // folders of earlier runs
  bool pauses = false;      // the experiment

  // --- with failovers ---
  std::string topology{};              // "sentinel" or "cluster"; empty: one server behind proxies
  std::vector<std::string> mishaps{};  // what befalls its servers; empty: all that can
  int failovers = 0;                   // so many; 0: as many as there is time for
  int sets = 1;                        // of servers, beside each other
  int synced = -1;                     // min_synced_replicas of the histories
  milliseconds quarantine{0};          // of the counters that have one
  milliseconds rest{0};                // most time between two failovers of a set
  bool redisson = false;

  // --- for worker processes ---
  bool worker = false;
  bool updates = false;  // counts, and writes no history
  int index = 0;
  int incarnation = 0;
  std::string folder;
  std::vector<std::string> servers;
  std::vector<std::string> more_servers{};  // behind no proxy
};

// Prints help, or what is wrong, and gives the exit code then.
std::optional<int> read_options(int count, char const* const* words, options& out);

// The command that makes this run again.
std::string command_for(options const& run);
// What a worker process is started with.
std::vector<std::string> words_for_worker(options const& run, std::string const& folder, int index, int incarnation,
                                          std::vector<std::string> const& servers);

// How a worker's clients are set up, and how long their calls may take.
config worker_config(options const& run);
// For a call that does not wait for a holder: config::retry_attempts says how often it is tried.
milliseconds longest_call(config const& settings);

}  // namespace latchkey::torture
