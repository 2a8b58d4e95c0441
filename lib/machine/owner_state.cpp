#include <machine/owner_state.hpp>
#include <machine/waiters.hpp>

#include <algorithm>
#include <cassert>

namespace latchkey::detail {

namespace {

constexpr std::size_t most_spare = 64;

}  // namespace

milliseconds renewed_trust(config const& settings) { return settings.lock_watchdog_timeout - settings.clock_margin; }

owner_state::owner_state(name_machine& name, std::uint64_t number) : of(name), owner(number), field(number) {}

owner_state::~owner_state() = default;

void owner_state::renew(std::unique_ptr<owner_state>& state, name_machine& name, std::uint64_t number) {
  auto holds = std::move(state->holds);
  auto renewals = std::move(state->renewals_);
  std::destroy_at(state.get());
  std::construct_at(state.get(), name, number);
  state->holds = std::move(holds);
  for (unsigned char mode = 0; mode < most_modes; ++mode)
    if (renewals[mode]) {
      assert(!renewals[mode]->is_linked());
      std::destroy_at(renewals[mode].get());
      std::construct_at(renewals[mode].get(), *state, mode);
      state->renewals_[mode] = std::move(renewals[mode]);
    }
}

renewal& owner_state::renewal_of(unsigned char mode) {
  if (!renewals_[mode]) renewals_[mode] = std::make_unique<renewal>(*this, mode);
  return *renewals_[mode];
}

bool renewal::covers(hold const& hold) const {
  return hold.mode == mode && hold.watchdog && !hold.lost && hold.generation <= newest;
}

bool renewal::concerns(hold const& hold) const {
  return covers(hold) || (looks && hold.mode == mode && !hold.lost && hold.id <= newest);
}

bool renewal::concerns_any() const {
  return std::any_of(of->holds.begin(), of->holds.end(), [&](auto const& hold) { return concerns(*hold); });
}

hold& owner_state::add(std::unique_ptr<hold> made) {
  auto& kept = *holds.push_back(std::move(made));
  kept.of = this;
  kept.what = timed::type::hold;
  ++live_[kept.mode];
  return kept;
}

std::unique_ptr<hold> owner_state::end(hold& ended) {
  assert(!ended.is_linked());
  if (!ended.lost) --live_[ended.mode];
  auto const found = std::find_if(holds.begin(), holds.end(), [&](auto const& hold) { return hold.get() == &ended; });
  auto gone = std::move(*found);
  holds.erase(found);
  return gone;
}

void owner_state::lose(hold& lost) {
  if (lost.lost) return;
  lost.lost = true;
  lost.link = nullptr;
  --live_[lost.mode];
}

hold* owner_state::find(hold_id id) {
  auto found = std::find_if(holds.begin(), holds.end(), [&](auto const& hold) { return hold->id == id; });
  return found == holds.end() ? nullptr : found->get();
}

hold* owner_state::latest(unsigned char mode) {
  for (std::size_t i = holds.size(); i-- > 0;)
    if (holds[i]->mode == mode && !holds[i]->leased) return holds[i].get();
  return nullptr;
}

std::int64_t owner_state::longest(unsigned char mode, instant now, config const& settings, hold const* except) const {
  milliseconds most{0};
  for (auto const& hold : holds) {
    if (hold->lost || hold->mode != mode || hold.get() == except) continue;
    auto needs = left(now, hold->deadline);
    if (hold->watchdog) needs = std::max(needs, left(now, hold->renewed(now, renewed_trust(settings))));
    if (needs != milliseconds::max()) needs += settings.clock_margin + delay_of(hold->link);
    most = std::max(most, needs);
  }
  return most.count();
}

instant request::sent_at() const { return grantee ? partner->ask_->sent : sent; }

instant owner_state::latest_deadline() const {
  instant last{};
  for (auto const& hold : holds)
    if (!hold->lost) last = std::max(last, hold->deadline);
  return last;
}

owner_state* owner_set::find(std::uint64_t owner) const {
  auto const found = all_.find(owner);
  return found == all_.end() ? nullptr : &*found;
}

owner_state* owner_set::find(std::uint64_t owner, place& where) {
  auto const [found, absent] = all_.insert_check(owner, where);
  return absent ? nullptr : &*found;
}

owner_state& owner_set::insert(std::unique_ptr<owner_state> state, place const& where) {
  return *all_.insert_commit(*state.release(), where);
}

std::unique_ptr<owner_state> owner_set::extract(owner_state& state) {
  all_.erase(all_.iterator_to(state));
  return std::unique_ptr<owner_state>(&state);
}

spare_storage::spare_storage() : holds(most_spare), requests(most_spare), owners_(most_spare) {}

owner_state& spare_storage::make(owner_set& all, owner_set::place const& where, name_machine& name,
                                 std::uint64_t owner) {
  if (owners_.empty()) return all.insert(std::make_unique<owner_state>(name, owner), where);
  auto state = owners_.take();
  owner_state::renew(state, name, owner);
  return all.insert(std::move(state), where);
}

// When an owner state goes, nobody can be told that there is no memory.
void spare_storage::take(owner_set& all, owner_state& ended) noexcept {
  assert(ended.idle() && !ended.in_outbox());
  ended.own.reset();  // gives up its channel
  if (ended.holds.capacity() > most_spare) ended.holds = {};
  ended.ask_.leave_room(requests);
  owners_.keep(all.extract(ended));
}

namespace {

// (Without this rule `{auto a = k.acquire();} {auto b = k.acquire();}` finds its own lock busy.)
bool sent_leaves_doubt(owner_state const& state) {
  request const& asked = *state.ask_;
  bool const none_live = state.live() == 0;
  if (asked.fix && none_live) return true;
  bool const awaited = asked.call != nullptr;
  switch (asked.what) {
    case ask::release: return !awaited && (asked.target == 0 || none_live);
    case ask::hand_off: return asked.grantee ? asked.abandoned : !awaited;
    case ask::acquire: return asked.abandoned && asked.target == 1;
    default: return false;
  }
}

// What was asked for a mode that several share keeps no try of that mode waiting.
bool keeps_waiting(request const& asked, kind::traits const& rules, unsigned char mode) {
  return !rules.shares(asked.mode, mode) || asked.fix;
}

}  // namespace

void active_requests::note(owner_state& state) {
  request const& asked = *state.ask_;
  bool const ends = asked.what == ask::release || asked.what == ask::hand_off;
  bool const direct = asked.where == request::place::direct;  // one at a time
  if (state.ask_.place()->noted() || (!ends && !direct && !asked.fix && !asked.abandoned)) return;
  all_.push_back(state);
}

void active_requests::forget(owner_state& state) {
  if (state.ask_.place() && state.ask_.place()->noted()) all_.erase(all_.iterator_to(state));
}

bool active_requests::in_doubt(kind::traits const& rules, unsigned char mode, owner_state const* except) const {
  int unsent_releases = 0;
  for (owner_state const& state : all_) {
    request const& asked = *state.ask_;
    if (&state == except || !keeps_waiting(asked, rules, mode)) continue;
    if (asked.sent_or_in_doubt()) {
      if (sent_leaves_doubt(state)) return true;
    } else {
      if (asked.what == ask::release && state.live() == 0 && ++unsent_releases > 1) return true;
      if (asked.what == ask::hand_off && !asked.grantee && !asked.call) return true;
    }
  }
  return false;
}

bool active_requests::in_doubt_from(instant when, kind::traits const& rules, unsigned char mode) const {
  return std::any_of(all_.begin(), all_.end(), [&](owner_state const& state) {
    request const& asked = *state.ask_;
    return keeps_waiting(asked, rules, mode) && asked.sent_or_in_doubt() && sent_leaves_doubt(state) &&
           asked.sent_at() <= when;
  });
}

bool active_requests::release_sent(std::optional<unsigned char> mode) const {
  return std::any_of(all_.begin(), all_.end(), [mode](owner_state const& state) {
    request const& asked = *state.ask_;
    return asked.sent_or_in_doubt() && asked.mode == mode.value_or(asked.mode) &&
           (asked.what == ask::hand_off || (asked.what == ask::release && asked.target == 0));
  });
}

owner_state* active_requests::unsent_release(owner_state const& except) {
  auto const found = std::find_if(all_.begin(), all_.end(), [&](owner_state const& state) {
    return &state != &except && state.ask_->what == ask::release && state.ask_->where == request::place::outbox &&
           state.live() == 0;
  });
  return found == all_.end() ? nullptr : &*found;
}

bool active_requests::dropped_release(owner_state const& except) const {
  return std::any_of(all_.begin(), all_.end(), [&](owner_state const& state) {
    return &state != &except && state.ask_->what == ask::release && !state.ask_->call;
  });
}

void active_requests::doubt_direct_tries() {
  for (owner_state& state : all_) {
    request& asked = state.ask_.pending();
    if (asked.where == request::place::direct && (asked.what == ask::acquire || asked.grantee)) asked.doubtful = true;
  }
}

}  // namespace latchkey::detail
