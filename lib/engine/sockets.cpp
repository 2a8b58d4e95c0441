#include <engine/sockets.hpp>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>

namespace latchkey::detail {

namespace {

void set(int fd, int level, int name, int value) noexcept { ::setsockopt(fd, level, name, &value, sizeof value); }

}  // namespace

int new_socket(int family, int type, int protocol) noexcept { return ::socket(family, type | SOCK_CLOEXEC, protocol); }

// Of TCP: on a Unix socket everything has arrived that was sent.
void abort_connection(int fd) noexcept {
  sockaddr nowhere{};
  nowhere.sa_family = AF_UNSPEC;
  ::connect(fd, &nowhere, sizeof nowhere);
  ::shutdown(fd, SHUT_RDWR);
}

void tune_tcp(int fd, milliseconds timeout) noexcept {
  set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  // Unanswered bytes end the connection by TCP_USER_TIMEOUT, silence by the probes of keepalive. The server may be
  // silent for long, so the first probe does not come at once.
  auto const limit = std::clamp<long long>(timeout.count(), 100, 3'600'000);
  set(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, static_cast<int>(limit));
  set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  int const seconds = static_cast<int>(std::clamp<long long>(limit / 1000, 1, 60));
  set(fd, IPPROTO_TCP, TCP_KEEPIDLE, std::max(seconds, 5));
  set(fd, IPPROTO_TCP, TCP_KEEPINTVL, std::max(seconds / 3, 1));
  set(fd, IPPROTO_TCP, TCP_KEEPCNT, 3);
}

}  // namespace latchkey::detail
