#include <machine/home.hpp>
#include <machine/name_machine.hpp>
#include <machine/recent_releases.hpp>

#include <algorithm>
#include <iterator>
#include <utility>

namespace latchkey::detail {

recent_releases::key recent_releases::key_of(owner_state const& state, unsigned char mode) {
  return {state.of.name(), state.field, mode};
}

recent_releases::entry recent_releases::entry_of(owner_state const& state, unsigned char mode, home const& ran_at,
                                                 instant now) {
  return {.ran_at = &ran_at,
          .of = state.of.at_,
          .which = &state.of.which(),
          .name = std::string(state.of.name()),
          .owner = state.field,
          .mode = mode,
          .at = now,
          .over_at = state.over_at};
}

void recent_releases::add(entry made) {
  if (auto const known = by_key_.find(key_of(made)); known != by_key_.end()) erase(known->second);
  while (all_.size() >= most) erase(all_.begin());
  all_.push_back(std::move(made));
  by_key_.emplace(key_of(all_.back()), std::prev(all_.end()));
}

void recent_releases::forget(owner_state const& state, unsigned char mode) noexcept {
  auto const known = by_key_.find(key_of(state, mode));
  if (known != by_key_.end()) erase(known->second);
}

bool recent_releases::has(owner_state const& state, unsigned char mode) const {
  return by_key_.contains(key_of(state, mode));
}

bool recent_releases::any_lately(home const& ran_at, instant now) const {
  for (auto released = all_.rbegin(); released != all_.rend() && after(released->at, margin) > now; ++released)
    if (released->ran_at == &ran_at) return true;
  return false;
}

void recent_releases::owe(entry const& released) {
  auto const known = by_key_.find(key_of(released));
  if (known == by_key_.end() || std::exchange(known->second->owed, true)) return;
  ++owed_;
}

bool recent_releases::take_owed(owner_state const& state, unsigned char mode) {
  auto const known = by_key_.find(key_of(state, mode));
  if (known == by_key_.end() || !std::exchange(known->second->owed, false)) return false;
  --owed_;
  return true;
}

// Also what ran elsewhere, behind an ASK: its slot may have gone there, and come back without it, unheard.
std::vector<recent_releases::entry> recent_releases::at(home const& at) const {
  std::vector<entry> made;
  std::copy_if(all_.begin(), all_.end(), std::back_inserter(made),
               [&](entry const& released) { return released.ran_at == &at || released.of == &at; });
  return made;
}

std::vector<recent_releases::entry> recent_releases::move(std::function<home&(std::string_view)> const& where) {
  std::vector<entry> made;
  for (entry& released : all_) {
    home const& now = where(released.name);
    if (&now == released.of) continue;
    released.of = released.ran_at = &now;
    made.push_back(released);
  }
  return made;
}

void recent_releases::leave(home const& ran_at) {
  for (entry& released : all_)
    if (released.ran_at == &ran_at) released.ran_at = released.of;
}

void recent_releases::confirm(home const& ran_at, instant asked) {
  for (auto released = all_.begin(); released != all_.end() && after(released->at, margin) <= asked;)
    released = released->ran_at == &ran_at && !released->owed ? erase(released) : std::next(released);
}

void recent_releases::forget_ended(instant now) {
  for (auto released = all_.begin(); released != all_.end();)
    released = released->over_at <= now && released->over_at != instant{} ? erase(released) : std::next(released);
}

recent_releases::position recent_releases::erase(position released) {
  owed_ -= released->owed;
  by_key_.erase(key_of(*released));
  return all_.erase(released);
}

}  // namespace latchkey::detail
