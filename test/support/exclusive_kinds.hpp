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
      {"non_reentrant_lock", 1, [](clients c, text name) { return c[0].get_non_reentrant_lock(name); }},
      {"fair_lock", 1, [](clients c, text name) { return c[0].get_fair_lock(name); }},
      {"spin_lock", 1, [](clients c, text name) { return c[0].get_spin_lock(name); }},
      {"fenced_lock", 1, [](clients c, text name) { return c[0].get_fenced_lock(name); }},
      {"plain_lock", 1, [](clients c, text name) { return c[0].get_plain_lock(name); }},
      {"write_lock", 1, [](clients c, text name) { return c[0].get_read_write_lock(name).write_lock(); }},
      {"multi_lock", 1,
       [](clients c, text name) {
         return c[0].get_multi_lock({c[0].get_lock(name), c[0].get_lock(name + " too")});
       }},
      {"red_lock", 5,
       [](clients c, text name) {
         std::vector<distributed_lock> members;
         for (auto const& each : c) members.push_back(each.get_lock(name));
         return c[0].get_red_lock(members);
       }},
  };
  return all;
}

}  // namespace latchkey::test
