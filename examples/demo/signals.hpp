#pragma once

#include <signal.h>

#include <chrono>
#include <exception>

namespace demo {

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
