#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace latchkey::tool {

// Where a URI leads to.
struct place {
  std::string socket;  // or host and port
  std::string host;
  int port = 6379;
  std::string user, password, database;
  // Of redis-sentinel:// and rediss-sentinel://, which leave the host to be asked for.
  std::string master;
  std::vector<std::pair<std::string, int>> sentinels;
  std::string sentinel_user, sentinel_password;
  // Of redis-cluster:// and rediss-cluster://, the same.
  std::vector<std::pair<std::string, int>> nodes;
};

// Of a URI that the library has read without a complaint.
place place_of(std::string_view uri);

}  // namespace latchkey::tool
