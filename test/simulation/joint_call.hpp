#pragma once

#include <joint/machine/joint_acquire.hpp>
#include <simulation/clocks.hpp>
#include <simulation/kinds.hpp>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

namespace latchkey::simulation {

// A call that acquires a lock of several members, and what it got.
struct joint_call {
  joint_call(detail::joint_rules const& rules, detail::joint_acquire::wish const& how)
      : quorum(rules.quorum), once(how.once), decides(rules, how) {}

  std::string label;
  std::size_t process = 0;
  std::uint64_t owner = 0;
  std::size_t const quorum;
  bool const once;
  instant started{};
  milliseconds lease{0};
  milliseconds max_hold{0};
  nanoseconds drift{0};  // how far clocks may run apart meanwhile
  detail::joint_acquire decides;
  std::map<detail::joint_acquire::attempt, task*> asked;
  instant deadline = detail::never;
  instant sleeps_until = detail::never;
  bool performing = false;
  bool told_busy = false;  // some member said so
  int completions = 0;
  bool granted = false;
  bool ended = false;  // released or dropped
  bool lost = false;
  bool gone = false;
  std::vector<task*> parts;  // of the hold

  bool holds() const { return granted && !ended && !lost && !gone; }
  std::size_t live() const {
    return static_cast<std::size_t>(
        std::count_if(parts.begin(), parts.end(), [](task const* one) { return !one->shown.lost; }));
  }
  // As long as a quorum of its members lasts.
  instant until() const {
    std::vector<instant> ends;
    for (task const* one : parts) ends.push_back(one->shown.lost ? instant{} : one->shown.until() - drift);
    if (ends.size() < quorum) return {};
    std::sort(ends.rbegin(), ends.rend());
    return ends[quorum - 1];
  }
};

}  // namespace latchkey::simulation
