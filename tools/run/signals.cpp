#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <run/signals.hpp>

namespace latchkey::tool {
namespace {

constexpr std::array handled{SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCONT, SIGTSTP};

bool ignored(int number) {
  struct sigaction now {};
  ::sigaction(number, nullptr, &now);
  return now.sa_handler == SIG_IGN;
}

}  // namespace

signals::signals() {
  ::sigemptyset(&read_);
  ::sigprocmask(SIG_BLOCK, nullptr, &mask_);
  for (int const number : handled)
    if (!ignored(number) && !::sigismember(&mask_, number)) ::sigaddset(&read_, number);
  ::sigaddset(&read_, SIGCHLD);

  sigset_t blocked = read_;
  ::sigaddset(&blocked, SIGTTOU);
  ::sigprocmask(SIG_BLOCK, &blocked, nullptr);

  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  ::sigaction(SIGPIPE, &ignore, &pipe_);
  // Where CHLD is ignored no child can be waited for.
  struct sigaction wait {};
  wait.sa_handler = SIG_DFL;
  ::sigaction(SIGCHLD, &wait, &child_);
}

void signals::restore() const {
  ::sigaction(SIGPIPE, &pipe_, nullptr);
  ::sigaction(SIGCHLD, &child_, nullptr);
  ::sigprocmask(SIG_SETMASK, &mask_, nullptr);
}

bool asks_to_end(int number) { return number == SIGTERM || number == SIGINT || number == SIGHUP || number == SIGQUIT; }

void die_of(int number) {
  rlimit const none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
  ::signal(number, SIG_DFL);
  sigset_t one;
  ::sigemptyset(&one);
  ::sigaddset(&one, number);
  ::pthread_sigmask(SIG_UNBLOCK, &one, nullptr);
  ::kill(::getpid(), number);
  ::_exit(128 + number);
}

}  // namespace latchkey::tool
