#include <simulation/simulation.hpp>

#include <algorithm>

namespace latchkey::simulation {

namespace {

constexpr milliseconds grace{50};  // past the end of a wait, for the answer to a first try

}  // namespace

// A call ends when its wait does; one without a wait has a budget. Members of a joint call end with that.
void simulation::limit(task const& one) {
  if (one.deadline == detail::never || part_of_.contains(&one)) return;
  moment const end = true_time(*nodes_[one.client], detail::after(one.deadline, grace));
  limits_[&one] = end;
  next_limit_ = std::min(next_limit_, end);
}

// A process that stands still, or a thread that is not scheduled, hears of the end as soon as it goes on.
moment simulation::patience_of(task const& one, moment end) const {
  node const& me = *nodes_[one.client];
  return std::max({end, me.paused_until + ms(1), one.direct ? me.borrower_back + ms(1) : 0});
}

void simulation::check_limit(task const& done) {
  auto const found = limits_.find(&done);
  if (found == limits_.end()) return;
  moment const end = patience_of(done, found->second);
  limits_.erase(found);
  if (now_ > end) fail(done.label + " ends late, for it had time until" + shown_time(end), eye::late);
}

void simulation::check_limits() {
  if (now_ <= next_limit_) return;
  next_limit_ = endless;
  for (auto const& [one, limit] : limits_) {
    moment const end = patience_of(*one, limit);
    if (now_ > end) fail(one->label + " goes on, though it had time until" + shown_time(end), eye::late);
    next_limit_ = std::min(next_limit_, end);
  }
}

moment simulation::limit_of(joint_call const& one) const {
  if (one.deadline == detail::never) return endless;
  node const& me = *nodes_[client_of(one, 0)];
  return std::max(true_time(me, detail::after(one.deadline, grace)), me.paused_until + ms(1));
}

}  // namespace latchkey::simulation
