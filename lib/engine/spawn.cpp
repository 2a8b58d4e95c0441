#include <engine/spawn.hpp>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <string_view>

#if __has_include(<linux/close_range.h>)
#include <linux/close_range.h>
#endif

namespace latchkey::detail {

namespace {

// The descriptors of the program that were not made by us, or without O_CLOEXEC. The calls of this are safe in a
// signal handler.
void close_at_exec() {
#if defined(SYS_close_range) && defined(CLOSE_RANGE_CLOEXEC)
  if (::syscall(SYS_close_range, 3u, ~0u, CLOSE_RANGE_CLOEXEC) == 0) return;
#endif
  rlimit most{};
  if (::getrlimit(RLIMIT_NOFILE, &most) != 0) return;
  int const end = static_cast<int>(std::min<rlim_t>(most.rlim_cur, 1 << 20));
  for (int fd = 3; fd < end; ++fd) ::fcntl(fd, F_SETFD, FD_CLOEXEC);
}

// Between fork and exec only calls that are safe in a signal handler.
[[noreturn]] void become(char const* program, char* const* arguments, char const* log, int report, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(127);
  ::setsid();
  struct sigaction by_default {};
  by_default.sa_handler = SIG_DFL;
  for (int which : {SIGTERM, SIGINT, SIGHUP, SIGPIPE, SIGCHLD}) ::sigaction(which, &by_default, nullptr);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  int const in = ::open("/dev/null", O_RDONLY);
  int const out = ::open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
  if (in >= 0 && out >= 0) {
    ::dup2(in, 0);
    ::dup2(out, 1);
    ::dup2(out, 2);
    close_at_exec();
    ::execv(program, arguments);
  }
  int const why = errno;
  static_cast<void>(!::write(report, &why, sizeof why));
  ::_exit(127);
}

}  // namespace

std::string find_program(std::string const& name) {
  if (name.find('/') != std::string::npos) return ::access(name.c_str(), X_OK) == 0 ? name : std::string();
  char const* const variable = std::getenv("PATH");
  std::string_view rest = variable != nullptr ? variable : "/usr/local/bin:/usr/bin:/bin";
  while (!rest.empty()) {
    std::string_view const folder = rest.substr(0, rest.find(':'));
    rest.remove_prefix(folder.size() + (folder.size() < rest.size() ? 1 : 0));
    std::string const path = std::string(folder.empty() ? "." : folder) + '/' + name;
    if (::access(path.c_str(), X_OK) == 0) return path;
  }
  return {};
}

pid_t spawn_bound(std::string const& program, std::vector<std::string> const& arguments, std::string const& log) {
  std::vector<char*> words{const_cast<char*>(program.c_str())};
  for (std::string const& word : arguments) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);

  int report[2];
  if (::pipe2(report, O_CLOEXEC) != 0) return -1;
  pid_t const parent = ::getpid();
  pid_t const child = ::fork();
  if (child == 0) become(program.c_str(), words.data(), log.c_str(), report[1], parent);
  int why = errno;
  ::close(report[1]);
  if (child > 0) {
    // End of file: the program runs. Otherwise: why it does not.
    ssize_t n = 0;
    do n = ::read(report[0], &why, sizeof why);
    while (n < 0 && errno == EINTR);
    if (n != sizeof why) {
      ::close(report[0]);
      return child;
    }
    ::waitpid(child, nullptr, 0);
  }
  ::close(report[0]);
  errno = why;
  return -1;
}

}  // namespace latchkey::detail
