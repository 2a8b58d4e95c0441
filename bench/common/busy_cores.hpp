#pragma once

#include <sys/types.h>

#include <vector>

namespace bench {

// While it lives, one process for each core does nothing but compute.
class busy_cores {
 public:
  busy_cores();
  busy_cores(busy_cores const&) = delete;
  busy_cores& operator=(busy_cores const&) = delete;
  ~busy_cores();

  std::vector<pid_t> const& processes() const { return processes_; }

 private:
  void stop() noexcept;

  std::vector<pid_t> processes_;
};

}  // namespace bench
