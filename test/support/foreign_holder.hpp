#pragma once

#include <support/redis_server.hpp>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace latchkey::test {

// A holder of a lock that is no client of ours: it writes what Redisson's scripts write, with plain commands.
class foreign_holder {
 public:
  // Holds from now on, also when this object is gone. Throws if somebody else does.
  foreign_holder(redis_server const& server, std::string lock, std::chrono::milliseconds lease = 60s);

  // In one go: the key goes and the waiters are told.
  void release() { release_and({}); }
  // The same, and first other commands, in one transaction: nothing comes between.
  void release_and(std::vector<std::vector<std::string>> const& first);
  // The key goes and nobody is told.
  void remove();
  void rename(std::string_view to);

 private:
  raw_redis admin_;
  std::string const name_;
};

}  // namespace latchkey::test
