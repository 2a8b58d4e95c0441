#pragma once

#include <support/redis_server.hpp>

#include <map>
#include <string>
#include <vector>

namespace latchkey::test {

// Counts the commands that clients send, with MONITOR. What scripts call and what admin connections send is left
// out; the latter are known by their Unix socket, so the server's clients must come by TCP.
class command_counter {
 public:
  // Counts from now on. \pre the server was made with `tcp`.
  explicit command_counter(redis_server const& server);

  // The commands since the last call, or since the beginning, by name in upper case.
  std::map<std::string, int> take();
  // The same, line by line as MONITOR shows them.
  std::vector<std::string> take_lines();

 private:
  raw_redis admin_;
  raw_redis monitor_;
  int marks_ = 0;
};

}  // namespace latchkey::test
