#pragma once

#include <support/patience.hpp>
#include <support/raw_redis.hpp>

#include <sys/types.h>

#include <functional>
#include <string>

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

}  // namespace latchkey::test
