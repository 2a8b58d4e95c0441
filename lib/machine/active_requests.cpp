#include <machine/active_requests.hpp>

#include <algorithm>

namespace latchkey::detail {

namespace {

// (Without this rule `{auto a = k.acquire();} {auto b = k.acquire();}` finds its own lock busy.)
bool sent_leaves_doubt(owner_state const& one) {
  request const& asked = one.ask_;
  bool const none_live = one.live() == 0;
  if (asked.fix && none_live) return true;
  bool const awaited = asked.call != nullptr;
  switch (asked.what) {
    case ask::release: return !awaited && (asked.target == 0 || none_live);
    case ask::hand_off: return asked.grantee ? asked.abandoned : !awaited;
    case ask::acquire: return asked.abandoned && asked.target == 1;
    default: return false;
  }
}

}  // namespace

void active_requests::make_room() {
  if (all_.capacity() == all_.size()) all_.reserve(2 * all_.size());
}

void active_requests::note(owner_state& one) {
  request& asked = one.ask_;
  bool const ends = asked.what == ask::release || asked.what == ask::hand_off;
  bool const direct = asked.where == request::place::direct;  // one at a time
  if (asked.noted || (!ends && !direct && !asked.fix && !asked.abandoned)) return;
  asked.noted = true;
  all_.push_back(&one);
}

void active_requests::forget(owner_state& one) {
  if (std::exchange(one.ask_.noted, false)) all_.erase(std::remove(all_.begin(), all_.end(), &one), all_.end());
}

// What was asked for a side that several share keeps no try of that side waiting.
bool active_requests::in_doubt(kind::traits const& rules, unsigned char mode, owner_state const* except) const {
  int unsent_releases = 0;
  for (owner_state const* one : all_) {
    request const& asked = one->ask_;
    if (one == except || (rules.shares(asked.mode, mode) && !asked.fix)) continue;
    if (asked.sent_or_in_doubt()) {
      if (sent_leaves_doubt(*one)) return true;
    } else {
      if (asked.what == ask::release && one->live() == 0 && ++unsent_releases > 1) return true;
      if (asked.what == ask::hand_off && !asked.grantee && !asked.call) return true;
    }
  }
  return false;
}

bool active_requests::release_sent() const {
  return std::any_of(all_.begin(), all_.end(), [](owner_state const* one) {
    request const& asked = one->ask_;
    return asked.sent_or_in_doubt() &&
           (asked.what == ask::hand_off || (asked.what == ask::release && asked.target == 0));
  });
}

owner_state* active_requests::unsent_release(owner_state const& except) const {
  auto const found = std::find_if(all_.begin(), all_.end(), [&](owner_state const* one) {
    return one != &except && one->ask_.what == ask::release && one->ask_.where == request::place::outbox &&
           one->live() == 0;
  });
  return found == all_.end() ? nullptr : *found;
}

bool active_requests::dropped_release(owner_state const& except) const {
  return std::any_of(all_.begin(), all_.end(), [&](owner_state const* one) {
    return one != &except && one->ask_.what == ask::release && !one->ask_.call;
  });
}

void active_requests::doubt_direct_tries() {
  for (owner_state* one : all_) {
    request& asked = one->ask_;
    if (asked.where == request::place::direct && (asked.what == ask::acquire || asked.grantee)) asked.doubtful = true;
  }
}

}  // namespace latchkey::detail
