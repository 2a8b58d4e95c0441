#include <machine/name_machine.hpp>

#include <machine/watchdog.hpp>

#include <algorithm>
#include <utility>

// What becomes of a name when its client closes.
namespace latchkey::detail {

std::vector<operation*> name_machine::calls() {
  std::vector<operation*> all;
  for (auto& call : waiting().queue()) all.push_back(&call);
  for (auto& state : owners_) {
    if (state.ask_->call && !state.ask_->call->queued) all.push_back(state.ask_->call);
    for (auto& call : state.behind) all.push_back(&call);
  }
  return all;
}

std::vector<owner_state*> name_machine::all_owners() {
  std::vector<owner_state*> all;
  for (auto& state : owners_) all.push_back(&state);
  return all;
}

void name_machine::close(std::uint64_t closer) {
  for (operation* call : calls())
    if (!call->goes_on() && call->what != operation::type::extend) give_up(*call, errc::closed);
  for (owner_state* state : all_owners()) {
    for (auto const& each : state->holds)
      if (!each->lost) holders_.tell(*each, errc::closed);
    auto const ends = [&](auto const& each) { return state->owner == closer && !each->lost && !each->leased; };
    for (auto next = state->holds.begin();
         (next = std::find_if(state->holds.begin(), state->holds.end(), ends)) != state->holds.end();)
      end_unawaited(*state, **next);
    tidy(*state);
  }
  shared_.forget_served(*this);
  waiting().close();
}

void name_machine::give_up_calls() {
  for (operation* call : calls()) give_up(*call, errc::closed);
  tidy_served();
}

void name_machine::leave() {
  for (owner_state* state : all_owners()) {
    for (std::size_t i = state->holds.size(); i-- > 0;)
      if (state->holds[i]->lost) holders_.forget(*state, *state->holds[i]);
    // They still count as live: a request under way for another hold of the owner must not end them.
    for (auto const& each : state->holds) holders_.leave(*state, *each);
    for (unsigned char mode = 0; mode < kind_->rules().modes; ++mode) holders_.stop_renewing(*state, mode);
    tidy(*state);
  }
  shared_.forget_served(*this);
}

}  // namespace latchkey::detail
