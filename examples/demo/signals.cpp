#include "signals.hpp"

#include <cerrno>

namespace demo {

signals::signals() {
  ::sigemptyset(&set_);
  for (int const number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGCHLD}) ::sigaddset(&set_, number);
  ::sigprocmask(SIG_BLOCK, &set_, nullptr);
  // A reader of our output who goes away must not end us before we have cleaned up.
  ::signal(SIGPIPE, SIG_IGN);
}

void signals::wait(std::chrono::milliseconds limit) const {
  timespec const time{limit.count() / 1000, limit.count() % 1000 * 1'000'000};
  int const number = ::sigtimedwait(&set_, nullptr, &time);
  if (number > 0 && number != SIGCHLD) throw interrupted(number);
}

}  // namespace demo
