#include <machine/name_machine.hpp>

#include <machine/watchdog.hpp>

#include <algorithm>
#include <utility>

// What becomes of a name when its client closes.
namespace latchkey::detail {

std::vector<operation*> name_machine::calls() {
  std::vector<operation*> all;
  for (auto& call : queue()) all.push_back(&call);
  for (auto& one : owners_) {
    if (one.ask_.call && !one.ask_.call->queued) all.push_back(one.ask_.call);
    for (auto& call : one.behind) all.push_back(&call);
  }
  return all;
}

std::vector<owner_state*> name_machine::all_owners() {
  std::vector<owner_state*> all;
  for (auto& one : owners_) all.push_back(&one);
  return all;
}

void name_machine::close(std::uint64_t closer) {
  for (operation* call : calls())
    if (!call->goes_on() && call->what != operation::type::extend) give_up(*call, errc::closed);
  for (owner_state* one : all_owners()) {
    for (auto const& each : one->holds)
      if (!each->lost) holders_.tell(*each, errc::closed);
    auto const ends = [&](auto const& each) { return one->owner == closer && !each->lost && !each->leased; };
    for (auto next = one->holds.begin();
         (next = std::find_if(one->holds.begin(), one->holds.end(), ends)) != one->holds.end();)
      end_unawaited(*one, **next);
    tidy(*one);
  }
  served_.clear();
  waiters_->close();
}

void name_machine::give_up_calls() {
  for (operation* call : calls()) give_up(*call, errc::closed);
  tidy_served();
}

void name_machine::leave() {
  for (owner_state* one : all_owners()) {
    for (std::size_t i = one->holds.size(); i-- > 0;)
      if (one->holds[i]->lost) holders_.forget(*one, *one->holds[i]);
    // They still count as live: a request under way for another hold of the owner must not end them.
    for (auto const& each : one->holds) holders_.leave(*one, *each);
    for (unsigned char mode = 0; mode < kind_.rules().modes; ++mode) holders_.stop_renewing(*one, mode);
    tidy(*one);
  }
  served_.clear();
}

}  // namespace latchkey::detail
