#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace bench {

// How much of the machine programs that are none of ours have used since it was made. A figure of a machine that
// somebody else uses too is not worth much, and nobody can see that from the figure.
class machine_watch {
 public:
  // `ours`: processes that belong to the measurement, besides this one.
  explicit machine_watch(std::vector<pid_t> ours);

  struct share {
    double others = 0;  // of all cores, from 0 to 1
    double stolen = 0;  // taken by the host of a virtual machine
  };
  share used() const;

 private:
  struct reading {
    double all = 0, busy = 0, stolen = 0, ours = 0;  // seconds
  };
  reading read() const;

  std::vector<pid_t> ours_;
  reading start_;
};

// User and system time that a process has used, in seconds; 0 if it is gone.
double cpu_seconds_of(pid_t process);

// One line: cores, processor, kernel, load.
std::string describe_machine();

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
