#include <machine/streak.hpp>

#include <algorithm>

namespace latchkey::detail {

bool streak::allows(local_handoff_options const& limit, instant now) const {
  if (limit.max_streak <= 0) return false;
  return length_ == 0 || (length_ < limit.max_streak && now - began_ < to_nanoseconds(limit.max_time));
}

void streak::leave(local_handoff_options const& limit, instant now, milliseconds most, std::optional<instant> first) {
  if (ended_ == 0 && !first) return;
  nanoseconds const longest = std::min(to_nanoseconds(limit.max_time), to_nanoseconds(most));
  instant const began = ended_ > 0 ? std::min(began_, first.value_or(began_)) : *first;
  left_until_ = after(now, std::min(now - began, longest));
}

}  // namespace latchkey::detail
