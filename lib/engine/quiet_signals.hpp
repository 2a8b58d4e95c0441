#pragma once

#include <csignal>

namespace latchkey::detail {

// While it lives the calling thread takes no signals, and threads that it starts never will.
class quiet_signals {
 public:
  quiet_signals() noexcept {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~quiet_signals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  quiet_signals(quiet_signals const&) = delete;
  quiet_signals& operator=(quiet_signals const&) = delete;

 private:
  sigset_t before_;
};

}  // namespace latchkey::detail
