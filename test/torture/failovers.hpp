#pragma once

#include <torture/checker.hpp>
#include <torture/options.hpp>
#include <torture/updates.hpp>

#include <atomic>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace latchkey::torture {

// A run with failovers; gives the exit code of the program.
int run_failovers(options const& run);

// What all sets of a run agree on.
struct agreement {
  std::atomic<int> begun{0};  // failovers
  std::atomic<bool> over{false};
};

// Servers, workers that write histories, processes that count, and what befalls the servers.
class server_set {
 public:
  server_set(options const& run, std::string const& folder, int number, agreement& with);

  // From beginning to end, with its checks. Whatever it starts ends with the thread that calls it.
  void play();

  // --- while it plays, by any thread ---
  std::map<std::string, int> struck() const;
  std::uint64_t sections() const;
  ledger const& counted() const { return counted_; }
  // The machine did not let anybody run.
  void note_stall(std::int64_t begin, std::int64_t end);

  // --- afterwards ---
  verdict const& found() const { return found_; }
  std::vector<std::string> const& troubles() const { return troubles_; }  // of the servers themselves
  int uninvited() const { return uninvited_; }
  // Which updates were lost, as those say who overwrote them.
  std::vector<std::string> losses() const;

 private:
  class scene;

  void note(std::string const& what) { troubles_.push_back("set " + std::to_string(number_) + ": " + what); }

  options histories_, updates_;
  std::string const folder_;
  int const number_;
  agreement& with_;
  board& shared_;
  board& counting_;
  ledger& counted_;
  std::mutex mutable mutex_;
  std::map<std::string, int> struck_;
  std::vector<record> stalls_;
  verdict found_;
  std::vector<std::string> troubles_;
  int uninvited_ = 0;
};

}  // namespace latchkey::torture
