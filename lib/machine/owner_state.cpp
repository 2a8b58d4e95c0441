#include <machine/owner_state.hpp>
#include <machine/waiters.hpp>

#include <algorithm>
#include <cassert>

namespace latchkey::detail {

namespace {

// AddressSanitizer sees a use after the end only in memory that was really freed.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool keeps_memory = false;
#elif defined(__has_feature)
constexpr bool keeps_memory = !__has_feature(address_sanitizer);
#else
constexpr bool keeps_memory = true;
#endif

constexpr std::size_t most_spare = 64;

}  // namespace

milliseconds renewed_trust(config const& settings) { return settings.lock_watchdog_timeout - settings.clock_margin; }

owner_state::owner_state(name_machine& name, std::uint64_t number) : of(name), owner(number), field(number) {}

owner_state::~owner_state() = default;

void owner_state::renew(std::unique_ptr<owner_state>& one, name_machine& name, std::uint64_t number) {
  auto holds = std::move(one->holds);
  auto spare = std::move(one->spare_);
  auto sides = std::move(one->sides_);
  std::destroy_at(one.get());
  std::construct_at(one.get(), name, number);
  one->holds = std::move(holds);
  one->spare_ = std::move(spare);
  for (unsigned char mode = 0; mode < most_modes; ++mode)
    if (sides[mode]) {
      assert(!sides[mode]->is_linked());
      std::destroy_at(sides[mode].get());
      std::construct_at(sides[mode].get(), *one, mode);
      one->sides_[mode] = std::move(sides[mode]);
    }
}

renewal& owner_state::side(unsigned char mode) {
  if (!sides_[mode]) sides_[mode] = std::make_unique<renewal>(*this, mode);
  return *sides_[mode];
}

bool renewal::covers(hold const& one) const {
  return one.mode == mode && one.watchdog && !one.lost && one.generation <= newest;
}

bool renewal::concerns(hold const& one) const {
  return covers(one) || (looks && one.mode == mode && !one.lost && one.id <= newest);
}

bool renewal::concerns_any() const {
  return std::any_of(of->holds.begin(), of->holds.end(), [&](auto const& one) { return concerns(*one); });
}

hold& owner_state::add(hold made) {
  if (spare_) {
    std::destroy_at(spare_.get());
    std::construct_at(spare_.get(), std::move(made));
  } else {
    spare_ = std::make_unique<hold>(std::move(made));
  }
  auto& kept = *holds.emplace_back(std::move(spare_));
  kept.of = this;
  kept.expiry.what = timer_node::type::hold;
  kept.expiry.of = &kept;
  ++live_[kept.mode];
  return kept;
}

void owner_state::end(hold& ended) {
  assert(!ended.is_linked() && !ended.expiry.is_linked());
  if (!ended.lost) --live_[ended.mode];
  auto const found = std::find_if(holds.begin(), holds.end(), [&](auto const& one) { return one.get() == &ended; });
  spare_ = keeps_memory ? std::move(*found) : nullptr;
  holds.erase(found);
}

void owner_state::lose(hold& lost) {
  if (lost.lost) return;
  lost.lost = true;
  lost.link = nullptr;
  --live_[lost.mode];
}

hold* owner_state::find(hold_id id) {
  auto found = std::find_if(holds.begin(), holds.end(), [&](auto const& one) { return one->id == id; });
  return found == holds.end() ? nullptr : found->get();
}

hold* owner_state::latest(unsigned char mode) {
  auto found =
      std::find_if(holds.rbegin(), holds.rend(), [&](auto const& one) { return one->mode == mode && !one->leased; });
  return found == holds.rend() ? nullptr : found->get();
}

std::int64_t owner_state::longest(unsigned char mode, instant now, config const& settings, hold const* except) const {
  milliseconds most{0};
  for (auto const& one : holds) {
    if (one->lost || one->mode != mode || one.get() == except) continue;
    auto needs = left(now, one->deadline);
    if (one->watchdog) needs = std::max(needs, left(now, one->renewed(now, renewed_trust(settings))));
    if (needs != milliseconds::max()) needs += settings.clock_margin + delay_of(one->link);
    most = std::max(most, needs);
  }
  return most.count();
}

instant owner_state::latest_deadline() const {
  instant last{};
  for (auto const& one : holds)
    if (!one->lost) last = std::max(last, one->deadline);
  return last;
}

owner_state* owner_set::find(std::uint64_t owner) const {
  auto const found = all_.find(owner);
  return found == all_.end() ? nullptr : &*found;
}

owner_state& owner_set::insert(std::unique_ptr<owner_state> one) {
  owner_state& made = *all_.insert(*one).first;
  assert(&made == one.get());
  one.release();
  return made;
}

std::unique_ptr<owner_state> owner_set::extract(owner_state& one) {
  all_.erase(all_.iterator_to(one));
  return std::unique_ptr<owner_state>(&one);
}

spare_storage::spare_storage() { owners_.reserve(most_spare); }

owner_state& spare_storage::make(owner_set& all, name_machine& name, std::uint64_t owner) {
  if (owners_.empty()) return all.insert(std::make_unique<owner_state>(name, owner));
  auto one = std::move(owners_.back());
  owners_.pop_back();
  owner_state::renew(one, name, owner);
  return all.insert(std::move(one));
}

// When an owner state goes, nobody can be told that there is no memory.
void spare_storage::take(owner_set& all, owner_state& ended) noexcept {
  assert(ended.idle() && !static_cast<outbox_hook&>(ended).is_linked());
  ended.own.reset();  // gives up its channel
  if (ended.holds.capacity() > most_spare) ended.holds.shrink_to_fit();
  auto one = all.extract(ended);
  if (keeps_memory && owners_.size() < owners_.capacity()) owners_.push_back(std::move(one));
}

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
