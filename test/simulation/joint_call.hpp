#pragma once

#include <joint/machine/joint_acquire.hpp>
#include <joint/machine/joint_count.hpp>
#include <simulation/clocks.hpp>
#include <simulation/kinds.hpp>

#include <map>
#include <memory>
#include <string>
#include <utility>

namespace latchkey::simulation {

// What it asked one member for.
struct joint_part {
  task* asked;
  detail::joint_trust trust;
};

// A call that acquires a lock of several members, and what it got.
struct joint_call {
  using part = std::shared_ptr<joint_part>;

  joint_call(detail::joint_rules how, detail::joint_acquire::wish const& wanted)
      : rules(std::move(how)), once(wanted.once), decides(rules, wanted), hold(rules.quorum) {}

  std::string label;
  std::size_t process = 0;
  std::uint64_t owner = 0;
  detail::joint_rules const rules;
  bool const once;
  instant started{};
  milliseconds lease{0};
  milliseconds max_hold{0};
  detail::joint_acquire decides;
  std::map<detail::joint_acquire::attempt, part> asked;
  instant deadline = detail::never;
  instant sleeps_until = detail::never;
  bool performing = false;
  bool told_busy = false;  // some member said so
  int completions = 0;
  bool granted = false;
  bool gone = false;
  detail::joint_count<part> hold;

  bool holds() const { return granted && !gone && hold.held(); }
};

}  // namespace latchkey::simulation
