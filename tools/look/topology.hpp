#pragma once

#include <cstdint>
#include <look/place.hpp>
#include <options/connection.hpp>
#include <string>
#include <utility>
#include <vector>

namespace latchkey::tool {

class session;

// A server that has locks.
struct lock_server {
  place at;
  std::vector<std::pair<std::int64_t, std::int64_t>> slots;  // of a cluster, from and to; else none
};

// Where a name is: behind sentinels on the master that the first of them names that answers; in a cluster on the master
// that has its slot, as the first node says that answers. Fails with `failure`, `bad_setting` for a URI that the
// library does not take.
place place_of(connection const& to, std::string const& name);

// Every master of a cluster that has slots, else the one server.
std::vector<lock_server> servers_of(connection const& to);

// A name that begins so and lies there. Fails with `bad_setting` if there seems to be none.
std::string name_at(lock_server const& one, session& there, std::string const& prefix);

}  // namespace latchkey::tool
