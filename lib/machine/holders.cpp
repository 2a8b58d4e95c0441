#include <machine/holders.hpp>

#include <algorithm>

namespace latchkey::detail {

void holders::make_room() {
  if (all_.capacity() == all_.size()) all_.reserve(2 * all_.size());
}

void holders::note(owner_state& one) {
  bool const known = std::exchange(one.holds_now, one.live() > 0);
  if (one.holds_now && !known) all_.push_back(&one);
  if (!one.holds_now && known) all_.erase(std::find(all_.begin(), all_.end(), &one));
}

instant holders::latest_deadline() const {
  instant last{};
  for (owner_state const* one : all_) last = std::max(last, one->latest_deadline());
  return last;
}

bool holders::excludes(owner_state const& one, unsigned char mode) const {
  for (unsigned char held = 0; held < rules_.modes; ++held)
    if (one.live(held) > 0 && !rules_.shares(held, mode)) return true;
  return false;
}

bool holders::keep_out(owner_state const& one, unsigned char mode) const {
  return rules_.exclusive && std::any_of(all_.begin(), all_.end(), [&](owner_state const* other) {
           return other != &one && excludes(*other, mode);
         });
}

}  // namespace latchkey::detail
