#pragma once

#include <torture/history.hpp>
#include <torture/options.hpp>
#include <torture/stage.hpp>

#include <map>
#include <string>
#include <vector>

namespace latchkey::torture {

// A run with all that belongs to it; gives the exit code of the program.
int run_torture(options const& run);
// Checks what an earlier run left.
int check_again(options const& run);
// Tells it in words.
int show(std::string const& folder);

// From now on SIGTERM ends a run early, and not the program.
void end_when_asked();
bool asked_to_end();

// Makes a folder for histories.
std::string new_folder();
// Those that are begun from now on keep their data in memory, if there is a place for it: a killed server loses nothing
// that it has written, wherever that is.
void keep_servers_in_memory();

// How far a run is: a bar that moves on a terminal, a line now and then elsewhere.
class progress {
 public:
  explicit progress(double minutes);

  void update(board const& shared, std::map<std::string, int> const& struck);
  void end() const;

 private:
  bool const terminal_;
  std::int64_t const length_;
  std::int64_t const began_ = now();
  std::int64_t next_ = began_;
};

// Most frequent first.
std::string in_words(std::map<std::string, int> const& counts);

// Keys that stand for a hold, a waiter or a request.
std::vector<std::string> wrong_keys(test::raw_redis& admin);
// What is still on the servers when all workers have ended and the longest lease is over, and should not be.
std::vector<std::string> find_remains(stage& on);

}  // namespace latchkey::torture
