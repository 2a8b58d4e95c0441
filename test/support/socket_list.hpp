#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

namespace latchkey::test {

// How a TCP socket of this process is set.
struct socket_settings {
  bool keepalive = false;
  bool no_delay = false;
  std::chrono::milliseconds user_timeout{0};
};

// Those that are connected to this port of the loopback interface.
std::vector<socket_settings> sockets_to(std::uint16_t port);

}  // namespace latchkey::test
