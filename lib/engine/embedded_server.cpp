#include <engine/embedded_server.hpp>
#include <engine/quiet_signals.hpp>
#include <engine/socket_options.hpp>
#include <engine/spawn.hpp>
#include <latchkey/error.hpp>

#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>

namespace latchkey::detail {

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
