#include <machine/recent_releases.hpp>

#include <utility>

namespace latchkey::detail {

void recent_releases::add(kind const& which, std::string const& name, std::uint64_t owner, unsigned char mode,
                          instant now) {
  forget_old(now);
  if (all_.size() >= most) all_.pop_front();
  if (!all_.empty()) {  // one caller that comes again and again
    entry& last = all_.back();
    if (last.owner == owner && last.mode == mode && last.name == name && last.which->same_as(which)) {
      last.at = now;
      return;
    }
  }
  all_.push_back({which.kept(), name, owner, mode, now});
}

std::vector<recent_releases::entry> recent_releases::lately(instant now) {
  forget_old(now);
  return {all_.begin(), all_.end()};
}

void recent_releases::forget_old(instant now) {
  while (!all_.empty() && after(all_.front().at, remembered) <= now) all_.pop_front();
}

}  // namespace latchkey::detail
