#include <machine/holders.hpp>
#include <machine/watchdog.hpp>

#include <algorithm>

namespace latchkey::detail {

void holders::make_room() { all_.make_room(); }

// A hold of this owner has begun or ended.
void holders::note(owner_state& state) {
  bool const known = std::exchange(state.holds_now, state.live() > 0);
  if (state.holds_now && !known) all_.push_back(&state);
  if (!state.holds_now && known) all_.erase(std::find(all_.begin(), all_.end(), &state));
}

instant holders::latest_deadline() const {
  instant last{};
  for (owner_state const* state : all_) last = std::max(last, state->latest_deadline());
  return last;
}

bool holders::excludes(owner_state const& state, unsigned char mode) const {
  auto const& rules = of_.kind_->rules();
  for (unsigned char held = 0; held < rules.modes; ++held)
    if (state.live(held) > 0 && !rules.shares(held, mode)) return true;
  return false;
}

bool holders::keep_out(owner_state const& state, unsigned char mode) const {
  return of_.kind_->rules().exclusive && std::any_of(all_.begin(), all_.end(), [&](owner_state const* other) {
           return other != &state && excludes(*other, mode);
         });
}

hold& holders::begin(owner_state& state, hold&& made) {
  context& shared = of_.shared_;
  hold& kept = state.add(shared.spares.holds.make(std::move(made)));
  note(state);
  if (kept.link) {
    kept.link->show(kept.deadline);
    ++shared.shown;
  }
  shared.timers.set_lazily(kept, kept.deadline);
  if (kept.watchdog) of_.at_->renewals.add(state.renewal_of(kept.mode));
  ++shared.counters.held;
  ++of_.tally_.held;
  ++of_.at_->held;
  return kept;
}

void holders::keep(owner_state& state, operation& call, unsigned char mode, instant sent, instant deadline) {
  hold made;
  made.id = made.generation = of_.shared_.next_hold++;
  made.mode = mode;
  if (call.max_hold.count() > 0) made.renew_until = after(sent, call.max_hold);
  made.watchdog = call.lease.count() <= 0 && of_.kind_->rules().renews && deadline < made.renew_until;
  made.began = of_.shared_.now;
  made.deadline = deadline;
  made.link = call.link;
  made.context = context_of(call.link);
  if (made.link) made.link->progress(of_.shared_.now);
  made.leased = call.link != nullptr;
  call.hold = begin(state, std::move(made)).id;
}

bool holders::lasts(hold const* hold) const { return hold && !hold->lost && hold->deadline > of_.shared_.now; }

nanoseconds holders::rest_of(hold const& hold) const {
  if (hold.deadline == never) return nanoseconds::max();
  context const& shared = of_.shared_;
  renewal const* const renewal = hold.of->known_renewal(hold.mode);
  instant ends = hold.deadline;
  if (hold.watchdog && renewal && renewal->under_way)
    ends = std::max(ends, after(shared.now, renewed_trust(shared.settings)));
  return std::max<nanoseconds>(ends + shared.settings.clock_margin + delay_of(hold.link) - shared.now, nanoseconds(0));
}

void holders::move_end(hold& hold, instant until) {
  hold.deadline = until;
  of_.shared_.timers.set_lazily(hold, until);
  if (hold.link) hold.link->show(until);
}

void holders::stop_renewing(owner_state& state, unsigned char mode) {
  bool const needed = std::any_of(state.holds.begin(), state.holds.end(),
                                  [&](auto const& h) { return h->mode == mode && h->watchdog && !h->lost; });
  if (renewal* const renewal = needed ? nullptr : state.known_renewal(mode)) of_.at_->renewals.remove(*renewal);
}

void holders::tell(hold& ended, error_code why) {
  if (ended.link && !ended.link->lost.exchange(true)) of_.shared_.out->lost.push_back({ended.link, why});
}

void holders::count_lost() {
  ++of_.shared_.counters.lost;
  ++of_.tally_.lost;
  --of_.shared_.counters.held;
  --of_.tally_.held;
  --of_.at_->held;
}

bool holders::lose(owner_state& state, hold& ended, error_code why) {
  context& shared = of_.shared_;
  bool const shown = ended.link != nullptr;
  bool const left = shared.closed();  // to its lease: told and counted
  shared.timers.drop(ended);
  if (!left) {
    count_lost();
    of_.note(event_type::lost, state.owner, why, {}, shared.now - ended.began, ended.context);
    tell(ended, why);
    if (shown) --shared.shown;
  }
  state.lose(ended);
  note(state);
  return !left && !shown;  // its lease asks once more when it goes
}

void holders::forget(owner_state& state, hold& ended) {
  context& shared = of_.shared_;
  if (ended.lost)
    std::erase(shared.lost_holds, &ended);
  else
    shared.timers.drop(ended);
  if (!ended.lost && !shared.closed()) {
    --shared.counters.held;
    --of_.tally_.held;
    --of_.at_->held;
    ++shared.counters.released;
    ++of_.tally_.released;
    if (ended.link) --shared.shown;
    count(shared.counters.hold_time, shared.now - ended.began);
  }
  shared.spares.holds.keep(state.end(ended));
  note(state);
}

void holders::leave(owner_state& state, hold& left) {
  context& shared = of_.shared_;
  of_.note(event_type::left_to_lease, state.owner, errc::closed, {}, rest_of(left), left.context);
  tell(left, errc::closed);
  shared.timers.drop(left);
  left.watchdog = false;
  if (std::exchange(left.link, nullptr)) --shared.shown;
  count_lost();
}

}  // namespace latchkey::detail
