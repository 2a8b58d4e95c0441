#include <support/socket_list.hpp>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <filesystem>
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

}  // namespace latchkey::test
