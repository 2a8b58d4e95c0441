#include <support/own_process.hpp>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace latchkey::test {

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
