#pragma once

#include <support/worlds.hpp>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

namespace latchkey::test {

// Three locks of one client, joined.
struct trio : common_world {
  std::vector<std::string> names{new_name(), new_name(), new_name()};
  std::vector<distributed_lock> members{own.get_lock(names[0]), own.get_lock(names[1]), own.get_lock(names[2])};
  distributed_lock all = own.get_multi_lock(members);
  client other{common_server().uri(), steady_config()};

  int keys() { return static_cast<int>(admin.integer("EXISTS", names[0], names[1], names[2])); }
  bool held_by(owner who) {
    std::map<std::string, std::string> const once{{field(who), "1"}};
    return std::all_of(names.begin(), names.end(), [&](auto const& one) { return admin.hash(one) == once; });
  }
};

}  // namespace latchkey::test
