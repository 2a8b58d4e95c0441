#include <engine/embedded_server.hpp>
#include <engine/guards.hpp>
#include <engine/sockets.hpp>
#include <latchkey/error.hpp>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
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

namespace {

constexpr milliseconds start_limit{5'000};
constexpr milliseconds gentle_limit{1'000};
constexpr milliseconds hard_limit{2'000};

bool listens(std::string const& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  int const fd = new_socket(AF_UNIX, SOCK_STREAM);
  if (fd < 0) return false;
  bool const connected = ::connect(fd, reinterpret_cast<sockaddr const*>(&address), sizeof address) == 0;
  ::close(fd);
  return connected;
}

}  // namespace

embedded_server::embedded_server() {
  char const* const variable = std::getenv("LATCHKEY_REDIS_SERVER");
  std::string const name = variable != nullptr && *variable != '\0' ? variable : "redis-server";
  std::string program = find_program(name);
  if (program.empty())
    throw lock_error(errc::connect_failed, "embedded server: there is no program '" + name +
                                               "'; install redis-server or set LATCHKEY_REDIS_SERVER");
  folder_.emplace();
  socket_path_ = folder_->path() + "/redis.sock";
  log_path_ = folder_->path() + "/redis.log";
  try {
    quiet_signals const blocked;
    keeper_ = std::thread([this, path = std::move(program)] { keep(path); });
    wait_until_it_listens();
  } catch (std::exception const& problem) {
    stop();
    if (auto const* known = dynamic_cast<lock_error const*>(&problem)) throw lock_error(*known);
    throw lock_error(errc::connect_failed, std::string("embedded server: ") + problem.what());
  }
}

embedded_server::~embedded_server() {
  if (!forks_.forked()) {
    stop();
  } else {
    // The server is the parent's, and the thread was not inherited.
    static_cast<void>(new std::thread(std::move(keeper_)));
  }
}

void embedded_server::keep(std::string program) {
  pid_t const child = spawn_bound(program,
                                  {"--port", "0", "--unixsocket", socket_path_, "--unixsocketperm", "700", "--dir",
                                   folder_->path(), "--save", "", "--appendonly", "no", "--daemonize", "no"},
                                  log_path_);
  {
    std::scoped_lock const lock(mutex_);
    failure_ = errno;
    child_ = child;
    phase_ = child > 0 ? phase::running : phase::failed;
  }
  changed_.notify_all();
  if (child <= 0) return;

  siginfo_t info{};
  while (::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT) != 0 && errno == EINTR) {
  }
  {
    // From here on the number may become somebody else's.
    std::scoped_lock const lock(mutex_);
    ::waitpid(child, nullptr, 0);
    child_ = -1;
    phase_ = phase::ended;
  }
  changed_.notify_all();
}

void embedded_server::wait_until_it_listens() {
  auto const end = std::chrono::steady_clock::now() + start_limit;
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      // Wakes at once if the server ends; else it is time to knock again.
      changed_.wait_for(lock, milliseconds(2), [&] { return phase_ == phase::failed || phase_ == phase::ended; });
      if (phase_ == phase::failed)
        throw lock_error(errc::connect_failed, std::string("embedded server: ") + std::strerror(failure_));
      if (phase_ == phase::ended)
        throw lock_error(errc::connect_failed, "embedded server: ended at once: " + last_words());
    }
    if (listens(socket_path_)) return;
    if (std::chrono::steady_clock::now() >= end)
      throw lock_error(errc::connect_failed, "embedded server: does not listen: " + last_words());
  }
}

bool embedded_server::wait_for_end(std::unique_lock<std::mutex>& lock, milliseconds length) {
  return changed_.wait_for(lock, length, [&] { return phase_ == phase::failed || phase_ == phase::ended; });
}

void embedded_server::stop() noexcept {
  if (keeper_.joinable()) {
    bool over = false;
    {
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, start_limit, [&] { return phase_ != phase::starting; });
      if (child_ > 0) ::kill(child_, SIGTERM);
      over = wait_for_end(lock, gentle_limit);
      if (!over) {
        if (child_ > 0) ::kill(child_, SIGKILL);
        over = wait_for_end(lock, hard_limit);
      }
    }
    // A killed process that does not end is stuck in the kernel: there is nothing left to do but wait for it.
    keeper_.join();
  }
  folder_->remove();
}

std::string embedded_server::last_words() const {
  std::ifstream log(log_path_);
  std::string line;
  std::string last = "no output";
  while (std::getline(log, line))
    if (!line.empty()) last = line;
  return last;
}

}  // namespace latchkey::detail
