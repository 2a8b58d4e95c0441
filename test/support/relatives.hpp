#pragma once

#include <support/catch.hpp>
#include <support/worlds.hpp>

#include <ostream>
#include <string>

namespace latchkey::test {

// A relative of the reentrant lock.
struct relative {
  char const* name;
  distributed_lock (client::*get)(std::string) const;
  bool listens;
};

inline std::ostream& operator<<(std::ostream& out, relative const& one) { return out << one.name; }

inline relative any_relative() {
  return GENERATE(values<relative>({
      {"non-reentrant lock", &client::get_non_reentrant_lock, true},
      {"spin lock", &client::get_spin_lock, false},
      {"fenced lock", &client::get_fenced_lock, true},
      {"plain lock", &client::get_plain_lock, true},
  }));
}

// Two clients of the common server and the lock of one name in both.
struct relatives {
  explicit relatives(relative which) : kind(which) {}
  relative kind;
  common_world w;
  event_log other_log;
  client other{common_server().uri(), steady_config(other_log)};
  distributed_lock lock = (w.own.*kind.get)(w.name);
  distributed_lock theirs = (other.*kind.get)(w.name);

  bool key_there() { return w.admin.integer("EXISTS", w.name) == 1; }
};

}  // namespace latchkey::test
