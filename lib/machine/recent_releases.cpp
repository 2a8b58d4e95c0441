#include <machine/recent_releases.hpp>

#include <machine/name_machine.hpp>

#include <iterator>

namespace latchkey::detail {

// Without the kind: kinds share data.
std::string recent_releases::key_of(std::string_view name, std::uint64_t owner, unsigned char mode) {
  std::string made(name);
  return made.append(1, '\0').append(std::to_string(owner)).append(1, static_cast<char>('0' + mode));
}

void recent_releases::add(owner_state const& one, unsigned char mode, instant now) {
  forget(one, mode);
  forget_old(now);
  if (all_.size() >= most) drop_oldest();
  all_.push_back({one.of.which().kept(), one.of.name(), one.field, mode, now, one.over_at});
  by_key_[key_of(one.of.name(), one.field, mode)] = std::prev(all_.end());
}

void recent_releases::forget(owner_state const& one, unsigned char mode) {
  if (all_.empty()) return;
  auto const known = by_key_.find(key_of(one.of.name(), one.field, mode));
  if (known == by_key_.end()) return;
  all_.erase(known->second);
  by_key_.erase(known);
}

bool recent_releases::has(owner_state const& one, unsigned char mode) const {
  return by_key_.contains(key_of(one.of.name(), one.field, mode));
}

std::vector<recent_releases::entry> recent_releases::lately(instant now) {
  forget_old(now);
  return {all_.begin(), all_.end()};
}

void recent_releases::drop_oldest() {
  entry const& oldest = all_.front();
  by_key_.erase(key_of(oldest.name, oldest.owner, oldest.mode));
  all_.pop_front();
}

void recent_releases::forget_old(instant now) {
  while (!all_.empty() && after(all_.front().at, remembered) <= now) drop_oldest();
}

}  // namespace latchkey::detail
