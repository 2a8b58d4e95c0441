#pragma once

#include "report.hpp"
#include "worker.hpp"

#include <signal.h>
#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <exception>
#include <string>
#include <vector>

namespace demo {

/// The worker processes of one row. They end with this object, and with the process that started them.
class processes {
 public:
  explicit processes(shared_job const& shared);
  processes(processes const&) = delete;
  processes& operator=(processes const&) = delete;
  ~processes();

  /// Have all of them said that they are ready?
  bool all_ready();
  /// Lets all of them begin.
  void go();
  /// Collects those that have ended.
  void collect();
  std::size_t running() const { return running_; }
  void kill_all() noexcept;
  /// How the first one that did not end well ended; empty: none.
  std::string const& trouble() const { return trouble_; }

 private:
  void start(shared_job const& shared, std::size_t index, int ready, int go);

  std::vector<pid_t> pids_;
  std::size_t running_ = 0;
  std::size_t ready_count_ = 0;
  int ready_end_ = -1;
  int go_end_ = -1;
  std::string trouble_;
};

/// `width` characters, of which done / all are filled.
std::string bar(std::int64_t done, std::int64_t all, std::size_t width);

/// Shows how far the demo is: a bar that moves on a terminal, a line now and then elsewhere.
class progress {
 public:
  progress(bool terminal, std::size_t rows) : terminal_(terminal), rows_(rows) {}

  void begin(row const& shown);
  void update(std::int64_t done, std::int64_t all);
  void end(row_result const& result);
  /// Removes a bar that is half done.
  void clear();

 private:
  using clock = std::chrono::steady_clock;
  std::string head() const;

  bool terminal_;
  std::size_t rows_;
  std::size_t number_ = 0;
  std::string label_;
  clock::time_point begun_{};
  clock::time_point next_line_{};
};

/// The user or the system asks the demo to end.
struct interrupted : std::exception {
  explicit interrupted(int number) : signal_number(number) {}
  char const* what() const noexcept override { return "interrupted"; }
  int signal_number;
};

/// Holds back Ctrl-C, SIGTERM, SIGHUP and SIGCHLD, so that they arrive where the demo waits and nowhere else: what it
/// has started is then ended by destructors, as after any error. For a process with one thread.
class signals {
 public:
  signals();

  /// Sleeps until a child ends, or for `limit`.
  /// \throws interrupted
  void wait(std::chrono::milliseconds limit) const;

 private:
  sigset_t set_;
};

}  // namespace demo
