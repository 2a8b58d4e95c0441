#include <support/child_process.hpp>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace latchkey::test {

child_process::child_process(std::function<int(channel&)> body) {
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) throw std::runtime_error("socketpair failed");
  descriptor ours(pair[0]);
  descriptor theirs(pair[1]);
  pid_t const parent = ::getpid();
  pid_ = ::fork();
  if (pid_ < 0) throw std::runtime_error("fork failed");
  if (pid_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(98);
    ours.close();
    channel up(theirs.get());
    int code = 99;
    try {
      code = body(up);
    } catch (...) {
      // The exit code says so.
    }
    ::_exit(code);
  }
  socket_ = std::move(ours);
  channel_ = channel(socket_.get());
}

child_process::~child_process() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

void child_process::send_signal(int number) { ::kill(pid_, number); }

int child_process::wait(std::chrono::milliseconds limit) {
  int status = 0;
  if (!wait_until([&] { return ::waitpid(pid_, &status, WNOHANG) == pid_; }, limit)) return -1;
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void child_process::channel::say(std::string line) {
  line += '\n';
  for (std::string_view rest = line; !rest.empty();) {
    auto const sent = ::send(socket_, rest.data(), rest.size(), MSG_NOSIGNAL);
    if (sent <= 0) return;
    rest.remove_prefix(static_cast<std::size_t>(sent));
  }
}

std::string child_process::channel::hear(std::chrono::milliseconds limit) {
  auto const end = clock::now() + limit;
  while (true) {
    if (auto const at = pending_.find('\n'); at != std::string::npos) {
      auto line = pending_.substr(0, at);
      pending_.erase(0, at + 1);
      return line;
    }
    auto const left = std::chrono::ceil<std::chrono::milliseconds>(end - clock::now()).count();
    pollfd ready{socket_, POLLIN, 0};
    if (left <= 0 || ::poll(&ready, 1, static_cast<int>(left)) <= 0) return {};
    char buffer[1024];
    auto const got = ::recv(socket_, buffer, sizeof buffer, 0);
    if (got <= 0) return {};
    pending_.append(buffer, static_cast<std::size_t>(got));
  }
}

namespace {

int option(int fd, int level, int name) {
  int value = 0;
  socklen_t size = sizeof value;
  ::getsockopt(fd, level, name, &value, &size);
  return value;
}

}  // namespace

std::vector<socket_settings> sockets_to(std::uint16_t port) {
  std::vector<socket_settings> found;
  for (auto const& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    int const fd = std::stoi(entry.path().filename().string());
    sockaddr_in peer{};
    socklen_t size = sizeof peer;
    if (::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) != 0) continue;
    if (peer.sin_family != AF_INET || ntohs(peer.sin_port) != port) continue;
    found.push_back({option(fd, SOL_SOCKET, SO_KEEPALIVE) != 0, option(fd, IPPROTO_TCP, TCP_NODELAY) != 0,
                     std::chrono::milliseconds(option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT))});
  }
  return found;
}

namespace {

void add(thread_cost& sum, std::filesystem::path const& task) {
  std::ifstream status(task / "status");
  std::string word;
  while (status >> word) {
    long value = 0;
    if (word == "voluntary_ctxt_switches:" && status >> value) sum.voluntary += value;
    if (word == "nonvoluntary_ctxt_switches:" && status >> value) sum.involuntary += value;
  }
  // The first number of schedstat is the time on a core, in nanoseconds.
  long long nanoseconds = 0;
  std::ifstream(task / "schedstat") >> nanoseconds;
  sum.cpu += std::chrono::microseconds(nanoseconds / 1'000);
  ++sum.threads;
}

}  // namespace

thread_cost cost_of_other_threads() {
  thread_cost sum;
  auto const own = std::to_string(::gettid());
  for (auto const& task : std::filesystem::directory_iterator("/proc/self/task"))
    if (task.path().filename() != own) add(sum, task.path());
  return sum;
}

}  // namespace latchkey::test
