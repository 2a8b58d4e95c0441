#pragma once

#include <interop/support/state_dump.hpp>
#include <support/redis_server.hpp>

#include <string>
#include <vector>

namespace latchkey::test {

// What clients and their scripts did on a server, as MONITOR tells it.
class monitor {
 public:
  explicit monitor(redis_server& server);

  // A line for each command since the last call: of clients as it is, of a script with two spaces before it. Left out
  // are what admin connections did, and commands that only concern a connection. Ids and times are made symbolic.
  std::vector<std::string> read(symbols const& table);

 private:
  raw_redis admin_;
  raw_redis listening_;
  int last_mark_ = 0;
};

}  // namespace latchkey::test
