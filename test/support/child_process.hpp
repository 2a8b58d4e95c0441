#pragma once

#include <support/patience.hpp>
#include <support/raw_redis.hpp>

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace latchkey::test {

// A forked copy of this program that runs one function and ends. Fork it before the test has threads of its own,
// unless the fork itself is what is tested. Killed with this object, and with this process however that ends.
class child_process {
 public:
  // How the child speaks with its parent: a line at a time.
  class channel {
   public:
    explicit channel(int socket) : socket_(socket) {}
    void say(std::string line);
    // Empty if nothing comes in time or the other side is gone.
    std::string hear(std::chrono::milliseconds limit = patience);

   private:
    int socket_;
    std::string pending_;
  };

  // What `body` returns is the exit code; 99 if it throws.
  explicit child_process(std::function<int(channel&)> body);
  child_process(child_process const&) = delete;
  child_process& operator=(child_process const&) = delete;
  ~child_process();

  channel& talk() { return channel_; }
  void send_signal(int number);
  // The exit code; 128 plus the signal that ended it; -1: still runs after the limit.
  int wait(std::chrono::milliseconds limit = patience);

 private:
  descriptor socket_;
  channel channel_{-1};
  pid_t pid_ = -1;
};

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
