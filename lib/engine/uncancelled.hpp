#pragma once

#include <pthread.h>

namespace latchkey::detail {

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
