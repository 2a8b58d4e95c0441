#pragma once

#include <support/redis_server.hpp>

#include <algorithm>
#include <chrono>
#include <deque>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace latchkey::test {

// Watches a fair lock with MONITOR: when it is free while somebody stands in its queue, by the server's own clock.
class lock_watch {
 public:
  struct findings {
    std::vector<std::chrono::microseconds> free;  // each time, ascending

    std::chrono::microseconds percentile(double part) const {
      if (free.empty()) return {};
      return free[std::min(free.size() - 1, static_cast<std::size_t>(part * static_cast<double>(free.size())))];
    }
    std::chrono::microseconds longest() const { return free.empty() ? std::chrono::microseconds{} : free.back(); }
  };

  // From now on.
  lock_watch(redis_server const& server, std::string lock);
  // Until now.
  findings stop();

 private:
  void watch();
  void see(std::string_view line);

  raw_redis admin_;
  raw_redis monitor_;
  std::string const lock_, queue_;
  bool held_ = false;
  std::deque<std::string> line_;
  std::chrono::microseconds since_{-1};
  findings found_;
  std::thread watcher_;
};

}  // namespace latchkey::test
