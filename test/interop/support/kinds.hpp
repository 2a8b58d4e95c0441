#pragma once

#include <string>
#include <vector>

namespace latchkey::test {

// A kind of lock that both libraries have, as the drivers call it, and what a check must know of it.
struct interop_kind {
  std::string name{};
  std::vector<std::string> rivals{};  // kinds whose try by somebody else fails while this is held
  int names = 1;                      // of how many locks it is made
  bool asks = true;                   // has hold_count, is_locked, remaining and force_unlock
  bool reentrant = true;
  long long longest_lease = 30'000;  // after a re-entry
  bool messages = true;              // a release is told on a channel
};

std::vector<interop_kind> const& interop_kinds();

// Names of locks for one check, never used twice, as a call wants them.
std::string names_for(interop_kind const& kind, std::string const& base = {});

// Names that a careless client would write wrongly.
std::vector<std::string> const& odd_names();

}  // namespace latchkey::test
