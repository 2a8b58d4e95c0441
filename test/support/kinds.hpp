#pragma once

#include <latchkey/client.hpp>

#include <functional>
#include <ostream>
#include <span>
#include <string>
#include <vector>

namespace latchkey::test {

using clients = std::vector<client>;  // one for each server

// A kind of lock, and what tests must know of it. Stress tests, sweeps, the matrix, the torture, the comparison with
// other libraries and the benchmark take their kinds from the one table of these.
struct lock_kind {
  std::string name;
  std::function<distributed_lock(std::span<client const>, std::string const&)> make{};
  bool exclusive = true;   // one owner holds it at a time
  bool reenters = true;    // else its owner is told already_held
  bool listens = true;     // a release is told on a channel
  bool relative = false;   // of the reentrant lock: it keeps every promise of it, with any lease and without one
  bool numbered = false;   // grants have fencing tokens
  bool is_string = false;  // its key; else it is a hash
  std::string side{};      // what the owner's field ends with
  int members = 1;         // their names on one server: member_name()
  int servers = 1;         // of which it is made where several are to be had
  bool joint() const { return members > 1; }
  distributed_lock of(client const& from, std::string const& key) const { return make({&from, 1}, key); }
};

inline std::ostream& operator<<(std::ostream& out, lock_kind const& one) { return out << one.name; }

std::vector<lock_kind> const& lock_kinds();
std::vector<lock_kind> exclusive_kinds();
lock_kind const& lock_kind_of(std::string const& name);

std::string member_name(std::string const& name, int member);

}  // namespace latchkey::test
