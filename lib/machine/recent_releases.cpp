#include <machine/recent_releases.hpp>

#include <machine/name_machine.hpp>

#include <iterator>
#include <utility>

namespace latchkey::detail {

recent_releases::key recent_releases::key_of(owner_state const& one, unsigned char mode) {
  return {one.of.name(), one.field, mode};
}

void recent_releases::add(home const& at_home, owner_state const& one, unsigned char mode, instant now) {
  forget(one, mode);
  while (!all_.empty() && (after(all_.front().at, remembered) <= now || all_.size() >= most)) drop_oldest();
  all_.push_back({&at_home, one.of.which().kept(), one.of.name(), one.field, mode, now, one.over_at});
  by_key_.emplace(key_of(all_.back()), std::prev(all_.end()));
}

void recent_releases::forget(owner_state const& one, unsigned char mode) noexcept {
  auto const known = by_key_.find(key_of(one, mode));
  if (known != by_key_.end()) erase(known->second);
}

bool recent_releases::has(owner_state const& one, unsigned char mode) const {
  return by_key_.contains(key_of(one, mode));
}

bool recent_releases::any(home const& at_home, instant now) const {
  for (auto one = all_.rbegin(); one != all_.rend() && after(one->at, remembered) > now; ++one)
    if (one->at_home == &at_home) return true;
  return false;
}

std::vector<recent_releases::entry> recent_releases::lately(home const& at_home, instant now) const {
  std::vector<entry> made;
  for (entry const& one : all_)
    if (one.at_home == &at_home && after(one.at, remembered) > now) made.push_back(one);
  return made;
}

void recent_releases::owe(entry const& one) {
  auto const known = by_key_.find(key_of(one));
  if (known == by_key_.end() || std::exchange(known->second->owed, true)) return;
  ++owed_;
}

bool recent_releases::take_owed(owner_state const& one, unsigned char mode) {
  auto const known = by_key_.find(key_of(one, mode));
  if (known == by_key_.end() || !std::exchange(known->second->owed, false)) return false;
  --owed_;
  return true;
}

void recent_releases::erase(std::list<entry>::iterator one) {
  owed_ -= one->owed;
  by_key_.erase(key_of(*one));
  all_.erase(one);
}

}  // namespace latchkey::detail
