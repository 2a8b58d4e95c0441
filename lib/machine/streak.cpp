#include <machine/streak.hpp>

#include <algorithm>

namespace latchkey::detail {

bool streak::allows(instant now) const {
  if (limit_.max_streak <= 0) return false;
  return length_ == 0 || (length_ < limit_.max_streak && now - began_ < to_nanoseconds(limit_.max_time));
}

void streak::leave(instant now, milliseconds most) {
  if (ended_ == 0) return;
  nanoseconds const limit = std::min(to_nanoseconds(limit_.max_time), to_nanoseconds(most));
  left_until_ = after(now, std::min(now - began_, limit));
}

}  // namespace latchkey::detail
