#include <common/busy_cores.hpp>

#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace bench {
namespace {

// Only calls that are safe after a fork of a program with threads.
[[noreturn]] void compute(pid_t parent, int core) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  cpu_set_t mine;
  CPU_ZERO(&mine);
  CPU_SET(static_cast<std::size_t>(core), &mine);
  ::sched_setaffinity(0, sizeof mine, &mine);
  for (volatile unsigned number = 0;;) number = number * 1664525u + 1013904223u;
}

}  // namespace

busy_cores::busy_cores() {
  cpu_set_t usable;
  CPU_ZERO(&usable);
  if (::sched_getaffinity(0, sizeof usable, &usable) != 0)
    throw std::system_error(errno, std::generic_category(), "sched_getaffinity");
  pid_t const parent = ::getpid();
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(static_cast<std::size_t>(core), &usable)) continue;
    pid_t const made = ::fork();
    if (made == 0) compute(parent, core);
    if (made < 0) {
      int const why = errno;
      stop();
      throw std::system_error(why, std::generic_category(), "fork");
    }
    processes_.push_back(made);
  }
}

busy_cores::~busy_cores() { stop(); }

void busy_cores::stop() noexcept {
  for (pid_t const one : processes_) ::kill(one, SIGKILL);
  for (pid_t const one : processes_)
    while (::waitpid(one, nullptr, 0) < 0 && errno == EINTR) {
    }
  processes_.clear();
}

}  // namespace bench
