#pragma once

#include "shared_job.hpp"

#include <sys/types.h>

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

}  // namespace demo
