#include <machine/name_machine.hpp>
#include <machine/outbox.hpp>
#include <machine/takeover.hpp>
#include <machine/watchdog.hpp>

#include <algorithm>
#include <utility>

namespace latchkey::detail {

namespace {

bool can_make_way(owner_state const& state, context const& shared) {
  request const& asked = *state.ask_;
  if (asked.where != request::place::outbox || !shared.barred.has(state)) return false;
  bool const enters_anew = asked.what == ask::acquire && !asked.repeated && state.live() > 0;
  return asked.what == ask::extend || (enters_anew && asked.call && !asked.call->queued);
}

// Who stands under a number that is not its own, and no owner's.
owner_state* of_number(owner_set& owners, std::uint64_t number) {
  if (number < context::first_stand_in) return nullptr;
  auto const found = std::find_if(owners.begin(), owners.end(), [&](auto const& one) { return one.field == number; });
  return found == owners.end() ? nullptr : &*found;
}

}  // namespace

void takeover::look_after_holds(name_machine& name) {
  name.tenure_.doubt();
  if (!name.kind_->rules().renews) return;
  for (owner_state* state : name.holders_.all())
    for (unsigned char mode = 0; mode < name.kind_->rules().modes; ++mode)
      if (state->live(mode) > 0) name.at_->renewals.look_for(state->renewal_of(mode));
}

void takeover::move(name_machine& name, home& to) {
  home& from = *std::exchange(name.at_, &to);
  to.passing.remove(name.name());
  bool const closed = name.shared_.closed();  // what was held is left to its leases
  if (!closed)
    for (owner_state const* state : name.holders_.all()) {
      from.held -= static_cast<std::size_t>(state->live());
      to.held += static_cast<std::size_t>(state->live());
    }
  for (owner_state& state : name.owners_) {
    if (state.in_outbox()) {
      from.requests.remove(state);
      to.requests.add(state);
    }
    for (unsigned char mode = 0; mode < name.kind_->rules().modes; ++mode) {
      renewal* const renewal = state.known_renewal(mode);
      if (!renewal || !renewal->under_way || !renewal->is_linked()) continue;
      from.requests.remove(*renewal);
      to.requests.add(*renewal);
    }
  }
  name.waiting().move(from);
  if (!closed) look_after_holds(name);
}

void takeover::end(name_machine& name) {
  for (owner_state& state : name.owners_) state.own.reset();
}

void takeover::release_again(name_machine& name, recent_releases::entry const& was) {
  // It may stand for what another one holds, or what this one asks for as another kind.
  name_machine* const other = name.in_use_elsewhere(was.owner);
  owner_state* const borrower = name.tenure_.borrower_of(was.owner);
  if (other || (borrower && borrower->live(was.mode) > 0)) {
    name.shared_.released.owe(was);
    owner_state* const waits = other ? other->known(was.owner) : nullptr;
    if (!waits || waits->ask_->under_way()) return;
    waits->lasts_until(was.over_at);
    return catch_up(*waits);
  }
  owner_state* const shown = borrower ? borrower : of_number(name.owners_, was.owner);
  owner_state& state = shown ? *shown : name.state_of(was.owner);
  // It stands for what another client has left to it, or has its turn in the field of another owner.
  if (state.client || state.field != was.owner) {
    name.shared_.released.owe(was);
    return name.tidy(state);
  }
  request const& asked = *state.ask_;
  bool const says_so = asked.under_way() && asked.mode == was.mode && asked.what != ask::leave;
  if (state.live(was.mode) == 0 && !says_so) {
    state.lasts_until(was.over_at);  // as long as it may be there it is not given up
    name.repair(state, was.mode);
  }
  // What is asked for meanwhile says it, too, unless its caller gives up before it has left.
  bool const asks = asked.what == ask::acquire || asked.grantee;
  if (says_so && asks) state.ask_.pending().owes = true;
  name.tidy(state);
}

void takeover::may_run_later(owner_state& state, home const& at) {
  name_machine& name = state.of;
  auto const& rules = name.kind_->rules();
  if (!rules.exclusive || !rules.takes) return;
  for (owner_state* of : {&state, state.ask_->partner}) {
    if (!of || of->client || of->live(of->ask_->mode) > 0) continue;
    request const& asked = *of->ask_;
    if (asked.what != ask::acquire && asked.what != ask::release && asked.what != ask::hand_off) continue;
    if (asked.lease > 0) of->lasts_until(after(name.shared_.now, milliseconds(asked.lease)));
    name.shared_.released.add(recent_releases::entry_of(*of, asked.mode, at, name.shared_.now));
  }
}

void takeover::may_come_back(owner_state& state, unsigned char mode) {
  context& shared = state.of.shared_;
  if (!shared.may_move || !state.of.kind_->rules().exclusive || state.client) return;
  // Behind an ASK it ran where the name is not yet.
  home const& ran_at = shared.answers ? *shared.answers : *state.of.at_;
  shared.released.add(recent_releases::entry_of(state, mode, ran_at, shared.now));
}

void takeover::catch_up(owner_state& state) {
  if (state.client || state.field != state.owner || state.of.tenure_.lent(state.owner) ||
      state.of.in_use_elsewhere(state.owner))
    return;
  for (unsigned char mode = 0; mode < state.of.kind_->rules().modes; ++mode)
    if (state.live(mode) == 0 && state.of.shared_.released.take_owed(state, mode)) state.of.repair(state, mode);
}

void takeover::make_way(owner_state& state) {
  if (can_make_way(state, state.of.shared_)) withdraw(state);
}

void takeover::withdraw(owner_state& state) {
  name_machine& name = state.of;
  request const was = *state.ask_;
  name.at_->requests.remove(state);
  name.finish(state);
  if (was.call && was.what == ask::acquire) {
    state.behind.push_front(*was.call);
    was.call->where = operation::place::behind_owner;
  } else if (was.call) {
    name.complete(*was.call);  // `yes` stays false
  }
  name.repair_modes(state, was.fix | (was.owes ? 1u << was.mode : 0u));
}

void takeover::let_release_pass(owner_state& state) {
  if (state.behind.empty() || !can_make_way(state, state.of.shared_)) return;
  auto const found = std::find_if(state.behind.begin(), state.behind.end(),
                                  [](operation const& call) { return call.what == operation::type::release; });
  if (found == state.behind.end()) return;
  operation& next = *found;
  state.behind.erase(found);
  make_way(state);
  state.behind.push_front(next);
}

}  // namespace latchkey::detail
