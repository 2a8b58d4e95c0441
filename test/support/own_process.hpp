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

// What threads have cost since they began.
struct thread_cost {
  long threads = 0;
  long voluntary = 0;  // how often one of them went to sleep by itself
  long involuntary = 0;
  std::chrono::microseconds cpu{0};
};

// Of all threads of this process but the calling one. Threads that ended are not counted.
thread_cost cost_of_other_threads();

}  // namespace latchkey::test
