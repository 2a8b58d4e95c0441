#include <joint/machine/joint_rules.hpp>

#include <machine/operation.hpp>

#include <algorithm>
#include <numeric>

namespace latchkey::detail {

namespace {

using member = joint_rules::member;

// In the order of the list; what one script call can take goes together, all or none, by name: so all clients find the
// same one busy. The same name twice does not: the second is a re-entry behind the first.
std::vector<std::vector<std::size_t>> steps_of(std::vector<member> const& members) {
  std::vector<std::vector<std::size_t>> steps;
  std::vector<bool> placed(members.size());
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (placed[i]) continue;
    auto& step = steps.emplace_back(std::vector{i});
    if (members[i].group == 0) continue;
    for (std::size_t j = i + 1; j < members.size() && step.size() < most_bundled; ++j) {
      bool const twice = std::any_of(step.begin(), step.end(),
                                     [&](std::size_t other) { return members[other].name == members[j].name; });
      if (placed[j] || twice || members[i].group != members[j].group) continue;
      step.push_back(j);
      placed[j] = true;
    }
    std::stable_sort(step.begin(), step.end(),
                     [&](std::size_t a, std::size_t b) { return members[a].name < members[b].name; });
  }
  return steps;
}

// By name: clients of other processes know nothing else of each other's members.
std::vector<std::size_t> ranks_of(std::vector<member> const& members) {
  std::vector<std::size_t> order(members.size()), rank(members.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return members[a].name < members[b].name; });
  for (std::size_t i = 0; i < order.size(); ++i) rank[order[i]] = i;
  return rank;
}

}  // namespace

joint_rules joint_rules::all_of(std::vector<member> const& members) {
  joint_rules made;
  made.members = made.quorum = members.size();
  made.steps = steps_of(members);
  made.rank = ranks_of(members);
  return made;
}

joint_rules joint_rules::majority_of(std::size_t members) {
  joint_rules made;
  made.members = members;
  made.quorum = members / 2 + 1;
  made.at_once = true;
  return made;
}

joint_rules joint_rules::with_lease(milliseconds lease) const {
  joint_rules made = *this;
  // A dead member costs at most a tenth of the lease, and a living one has the time of a connection or two.
  made.member_time = std::max(milliseconds(50), lease / 10);
  return made;
}

nanoseconds joint_rules::drift(milliseconds lease) const {
  // How far clocks may run apart meanwhile (Redlock's figure).
  return at_once ? to_nanoseconds(lease) / 100 + milliseconds(2) : nanoseconds(0);
}

}  // namespace latchkey::detail
