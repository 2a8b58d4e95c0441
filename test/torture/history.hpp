#pragma once

#include <support/endpoint.hpp>
#include <torture/record.hpp>

#include <atomic>
#include <string>
#include <vector>

namespace latchkey::torture {

// Appends to a file that outlives this process however it ends. Any thread may write.
class history_writer {
 public:
  explicit history_writer(std::string const& path);

  void write(record line);
  std::uint64_t new_section() { return ++sections_; }

 private:
  test::descriptor file_;
  std::atomic<std::uint64_t> sections_{0};
};

// The readable part of a file.
std::vector<record> read_history(std::string const& path);

// What one process did.
struct process_history {
  int index = 0;
  int incarnation = 0;
  std::vector<record> lines;
};

// What a run left in its folder.
struct run_history {
  std::vector<process_history> workers;
  std::vector<record> coordinator;
  std::vector<std::string> left_behind;  // what was found on the servers afterwards, in words
  std::vector<std::string> accidents;    // workers that ended on their own, in words
};

std::string worker_file(std::string const& folder, int index, int incarnation);
std::string coordinator_file(std::string const& folder);
std::string left_behind_file(std::string const& folder);
std::string accidents_file(std::string const& folder);
void write_lines(std::string const& path, std::vector<std::string> const& lines);
run_history read_run(std::string const& folder);

}  // namespace latchkey::torture
