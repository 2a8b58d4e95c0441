#include "private_server.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <thread>

namespace demo {
namespace {

constexpr auto start_limit = std::chrono::seconds(10);

std::filesystem::path make_directory() {
  auto const base = std::filesystem::temp_directory_path() / "latchkey-demo-XXXXXX";
  std::string name = base.string();
  if (!mkdtemp(name.data())) throw std::system_error(errno, std::generic_category(), "cannot make " + name);
  return name;
}

// One PING over a connection of its own, so that this file needs no client library.
bool answers(std::string const& path) {
  int const fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return false;
  timeval const limit{1, 0};
  ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  std::string_view const ping = "PING\r\n";
  char answer[5] = {};
  bool const good = ::connect(fd, reinterpret_cast<sockaddr const*>(&address), sizeof address) == 0 &&
                    ::send(fd, ping.data(), ping.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(ping.size()) &&
                    ::recv(fd, answer, sizeof answer, MSG_WAITALL) == static_cast<ssize_t>(sizeof answer) &&
                    std::string_view(answer, sizeof answer) == "+PONG";
  ::close(fd);
  return good;
}

// Between fork and exec only calls that are safe after a fork of a process with threads.
[[noreturn]] void become_server(pid_t parent, char const* const* arguments) {
  // The death of the parent ends the server, and Ctrl-C does not reach it: its parent decides when it stops.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  ::setsid();
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  int const null = ::open("/dev/null", O_RDWR);
  for (int fd = 0; fd < 3; ++fd) ::dup2(null, fd);
  ::execvp(arguments[0], const_cast<char* const*>(arguments));
  ::_exit(127);
}

}  // namespace

private_server::private_server(int max_clients, std::vector<std::string> const& more) : directory_(make_directory()) {
  try {
    socket_path_ = (directory_ / "redis.sock").string();
    if (socket_path_.size() >= sizeof(sockaddr_un{}.sun_path)) {
      throw std::runtime_error("the path of the temporary directory is too long for a Unix socket: " + socket_path_);
    }
    start(max_clients, more);
    wait_until_it_answers();
  } catch (...) {
    clear();
    throw;
  }
}

private_server::~private_server() { clear(); }

void private_server::start(int max_clients, std::vector<std::string> const& more) {
  std::string const clients = std::to_string(max_clients);
  std::string const directory = directory_.string();
  std::vector<char const*> arguments{"redis-server",
                                     "--port",
                                     "0",
                                     "--unixsocket",
                                     socket_path_.c_str(),
                                     "--save",
                                     "",
                                     "--dir",
                                     directory.c_str(),
                                     "--appendonly",
                                     "no",
                                     "--tcp-backlog",
                                     "4096",
                                     "--maxclients",
                                     clients.c_str(),
                                     "--loglevel",
                                     "warning",
                                     "--daemonize",
                                     "no"};
  for (auto const& word : more) arguments.push_back(word.c_str());
  arguments.push_back(nullptr);
  pid_t const parent = ::getpid();
  pid_ = ::fork();
  if (pid_ < 0) throw std::system_error(errno, std::generic_category(), "cannot start redis-server");
  if (pid_ == 0) become_server(parent, arguments.data());
}

void private_server::wait_until_it_answers() {
  auto const deadline = std::chrono::steady_clock::now() + start_limit;
  while (!answers(socket_path_)) {
    int status = 0;
    if (::waitpid(pid_, &status, WNOHANG) == pid_) {
      pid_ = -1;
      throw std::runtime_error(WIFEXITED(status) && WEXITSTATUS(status) == 127
                                   ? "there is no redis-server in the PATH"
                                   : "redis-server ended before it answered");
    }
    if (std::chrono::steady_clock::now() > deadline) throw std::runtime_error("redis-server did not answer in time");
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

void private_server::kill() noexcept {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
}

// Nothing of it is to be kept, so nothing needs a polite end.
void private_server::clear() noexcept {
  kill();
  std::error_code ignored;
  std::filesystem::remove_all(directory_, ignored);
}

int free_port() {
  int const fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  socklen_t size = sizeof address;
  bool const found = ::bind(fd, any, size) == 0 && ::getsockname(fd, any, &size) == 0;
  ::close(fd);
  if (!found) throw std::runtime_error("there is no free port");
  return ntohs(address.sin_port);
}

}  // namespace demo
