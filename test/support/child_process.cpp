#include <support/child_process.hpp>

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <stdexcept>
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

}  // namespace latchkey::test
