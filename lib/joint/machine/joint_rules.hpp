#pragma once

#include <base/instant.hpp>

#include <cstddef>
#include <string_view>
#include <vector>

namespace latchkey::detail {

// How the members of a joint lock are asked, and how many of them make the lock.
struct joint_rules {
  std::size_t members = 0;
  std::size_t quorum = 0;
  // Not at_once: members that are asked together, one step after the other.
  std::vector<std::vector<std::size_t>> steps;
  // Of several busy members the one of least rank is waited for, so that different clients wait for the same.
  std::vector<std::size_t> rank;
  bool at_once = false;  // all members are asked beside each other
  // No member is asked for longer than this where all are asked at once, or while others are held.
  milliseconds member_time{0};

  struct member {
    std::string_view name;
    std::size_t group;  // one script call may take several of the same group; 0: none
  };

  // All are needed.
  static joint_rules all_of(std::vector<member> const& members);
  // Most are needed.
  static joint_rules majority_of(std::size_t members);

  // For a hold of this length.
  joint_rules with_lease(milliseconds lease) const;
  // A hold is trusted for so much less than its lease.
  nanoseconds drift(milliseconds lease) const;
};

}  // namespace latchkey::detail
