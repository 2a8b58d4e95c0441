#pragma once

#include <latchkey/client.hpp>

#include <functional>
#include <string>
#include <vector>

namespace latchkey::test {

// A kind of lock that only one owner holds at a time, and how a process gets one from its clients, one per server.
struct exclusive_kind {
  std::string name;
  int servers = 1;
  std::function<distributed_lock(std::vector<client> const&, std::string const&)> make;
};

inline std::vector<exclusive_kind> const& exclusive_kinds() {
  using clients = std::vector<client> const&;
  using text = std::string const&;
  static std::vector<exclusive_kind> const all{
      {"lock", 1, [](clients c, text name) { return c[0].get_lock(name); }},
  };
  return all;
}

}  // namespace latchkey::test
