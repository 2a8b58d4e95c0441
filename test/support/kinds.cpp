#include <support/kinds.hpp>

#include <algorithm>
#include <stdexcept>

namespace latchkey::test {

namespace {

using one_of = std::span<client const>;
using text = std::string const&;

std::vector<distributed_lock> members_of(one_of from, text name, int count) {
  std::vector<distributed_lock> made;
  for (int i = 0; i < count; ++i) made.push_back(from[0].get_lock(member_name(name, i)));
  return made;
}

// A member on each server; three on a single one.
distributed_lock red_lock_of(one_of from, text name) {
  if (from.size() == 1) return from[0].get_red_lock(members_of(from, name, 3));
  std::vector<distributed_lock> made;
  for (auto const& each : from) made.push_back(each.get_lock(name));
  return from[0].get_red_lock(made);
}

}  // namespace

std::vector<lock_kind> const& lock_kinds() {
  static std::vector<lock_kind> const all{
      {.name = "lock", .make = [](one_of from, text name) { return from[0].get_lock(name); }},
      {.name = "non_reentrant_lock",
       .make = [](one_of from, text name) { return from[0].get_non_reentrant_lock(name); },
       .reenters = false,
       .relative = true},
      {.name = "fair_lock", .make = [](one_of from, text name) { return from[0].get_fair_lock(name); }},
      {.name = "spin_lock",
       .make = [](one_of from, text name) { return from[0].get_spin_lock(name); },
       .listens = false,
       .relative = true},
      {.name = "fenced_lock",
       .make = [](one_of from, text name) { return from[0].get_fenced_lock(name); },
       .relative = true,
       .numbered = true},
      {.name = "plain_lock",
       .make = [](one_of from, text name) { return from[0].get_plain_lock(name); },
       .reenters = false,
       .relative = true,
       .is_string = true},
      {.name = "read_lock",
       .make = [](one_of from, text name) { return from[0].get_read_write_lock(name).read_lock(); },
       .exclusive = false},
      {.name = "write_lock",
       .make = [](one_of from, text name) { return from[0].get_read_write_lock(name).write_lock(); },
       .side = ":write"},
      {.name = "multi_lock",
       .make = [](one_of from, text name) { return from[0].get_multi_lock(members_of(from, name, 2)); },
       .members = 2},
      {.name = "red_lock", .make = red_lock_of, .listens = false, .members = 3, .servers = 5},
  };
  return all;
}

std::vector<lock_kind> exclusive_kinds() {
  auto some = lock_kinds();
  std::erase_if(some, [](lock_kind const& one) { return !one.exclusive; });
  return some;
}

lock_kind const& lock_kind_of(std::string const& name) {
  for (auto const& one : lock_kinds())
    if (one.name == name) return one;
  throw std::logic_error("there is no kind " + name);
}

std::string member_name(std::string const& name, int member) {
  return member == 0 ? name : name + "-" + std::to_string(member);
}

}  // namespace latchkey::test
