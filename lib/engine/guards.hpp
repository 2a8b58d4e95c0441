#pragma once

#include <pthread.h>

#include <csignal>
#include <cstdint>

namespace latchkey::detail {

// A number that grows in the child of every fork(). A child must touch neither the mutexes nor the sockets nor the
// timers that it inherited: another thread may have held the mutex, and the sockets are shared with the parent.
class fork_guard {
 public:
  fork_guard();

  // Was this object made by an ancestor of the calling process?
  bool forked() const noexcept;

 private:
  std::uint32_t generation_;
};

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

// While it lives pthread_cancel() does not end the calling thread: it would leave a mutex locked, a connection with
// half an answer, or unwind through what may not throw. A request to cancel acts at the caller's next cancellation
// point.
class uncancelled {
 public:
  uncancelled() noexcept { ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  ~uncancelled() {
    int unused = 0;
    ::pthread_setcancelstate(before_, &unused);
  }
  uncancelled(uncancelled const&) = delete;
  uncancelled& operator=(uncancelled const&) = delete;

 private:
  int before_ = PTHREAD_CANCEL_ENABLE;
};

}  // namespace latchkey::detail
