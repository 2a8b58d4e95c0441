#include <machine/name_machine.hpp>
#include <machine/outbox.hpp>
#include <machine/takeover.hpp>
#include <machine/watchdog.hpp>

#include <algorithm>

namespace latchkey::detail {

void name_machine::release(owner_state& state, operation& call) {
  hold* ended = call.hold != 0 ? state.find(call.hold) : state.latest(call.mode);
  if (!ended) return complete(call, errc::not_owner, state.live(call.mode) > 0 ? only_its_lease : std::string_view());
  if (ended->lost) {
    holders_.forget(state, *ended);
    return complete(call, errc::lease_lost);
  }
  bool const inner = state.live(ended->mode) > 1;
  if (end_turn(state, *ended)) {
    call.released = inner ? release_result::still_held : release_result::released;
    return complete(call);
  }
  call.where = operation::place::trying;
  watch_deadline(call);
  begin_release(state, *ended, &call);
  // Who waits here gets it in the same request; else it goes directly if nothing else of this name is on the way.
  if (state.live(state.ask_->mode) == 0 && waiting().onward().can_hand_off(state)) {
    pair_up(state, waiting().queue().head());
    send(state, true);
  } else {
    send(state, !active_.release_sent());
  }
}

// A lease went away: nobody waits for its release.
void name_machine::drop(std::uint64_t owner, hold_id which) {
  owner_state* state = known(owner);
  hold* ended = state ? state->find(which) : nullptr;
  if (!ended) return;
  if (shared_.closed())  // left to its lease
    holders_.forget(*state, *ended);
  else
    end_unawaited(*state, *ended);
  tidy(*state);
  tidy_served();
}

void name_machine::end_unawaited(owner_state& state, hold& ended) {
  if (ended.lost) return holders_.forget(state, ended);
  takeover::make_way(state);
  if (!state.ask_->under_way()) {
    if (end_turn(state, ended)) return state.behind.empty() ? void() : advance(state);
    begin_release(state, ended, nullptr);
    return send(state, false);
  }
  // The release comes after the request under way: what that leaves on the server is then repaired.
  unsigned char const mode = ended.mode;
  holders_.forget(state, ended);
  holders_.stop_renewing(state, mode);
  repair(state, mode);
  end_extensions(state);
}

void name_machine::unlink(std::uint64_t owner, hold_id which) {
  owner_state* state = known(owner);
  hold* const shown = state ? state->find(which) : nullptr;
  if (!shown || !shown->link) return;
  shown->link = nullptr;
  --shared_.shown;
}

void name_machine::renew_no_longer(std::uint64_t owner, hold_id which) {
  owner_state* const state = known(owner);
  hold* const held = state ? state->find(which) : nullptr;
  if (!held) return;
  held->watchdog = false;
  holders_.stop_renewing(*state, held->mode);
}

void name_machine::thread_ended(std::uint64_t owner) {
  owner_state* const state = known(owner);
  if (!state) return;
  for (auto const& held : state->holds) {
    if (held->lost || held->leased) continue;
    note(event_type::holder_thread_ended, owner, {}, {}, holders_.rest_of(*held));
    held->watchdog = false;
  }
  for (unsigned char mode = 0; mode < kind_->rules().modes; ++mode) holders_.stop_renewing(*state, mode);
}

// The server need not be told yet: the owner has more of it, or the next one in turn has it.
bool name_machine::end_turn(owner_state& state, hold& ended) {
  if (!tenure_.is_of(state) || ended.mode != tenure_.mode() || ended.lost) return false;
  if (shared_.timers.first() <= shared_.now) return false;  // another hold may have ended unnoticed
  bool const inner = state.live(ended.mode) > 1;
  operation* const next = !inner && queue().head_idle() ? &waiting().queue().head() : nullptr;
  bool const goes_on = inner || (next && waiting().onward().may_pass(state, *next));
  if (!goes_on || !tenure_.count_chance()) return false;
  note(event_type::released, state.owner, {}, {}, shared_.now - ended.began, ended.context);
  unsigned char const mode = ended.mode;
  holders_.forget(state, ended);
  holders_.stop_renewing(state, mode);
  if (next)
    pass_on(state, *next);
  else
    tenure_.count_moved();
  shared_.timers.set_lazily(tenure_.due(*this), tenure_.confirm_at());
  return true;
}

void name_machine::begin_release(owner_state& state, hold& ended, operation* call) {
  request asked;
  asked.what = ask::release;
  asked.mode = ended.mode;
  asked.until = ended.deadline;
  asked.began = ended.began;
  asked.context = ended.context;
  asked.call = call;
  holders_.forget(state, ended);
  holders_.stop_renewing(state, asked.mode);
  asked.target = state.live(asked.mode);
  begin(state, asked);
}

void name_machine::extend(owner_state& state, operation& call) {
  hold* extended = state.find(call.hold);
  if (!holders_.lasts(extended)) return complete(call);  // `yes` stays false
  request asked;
  asked.what = ask::extend;
  asked.mode = extended->mode;
  asked.wanted = call.lease;
  asked.extends = extended->id;
  asked.call = &call;
  // From now on a fixed lease; answers to renewals that are under way count for it no longer.
  extended->generation = shared_.next_hold++;
  extended->watchdog = false;
  extended->renew_until = never;
  holders_.stop_renewing(state, asked.mode);
  call.where = operation::place::trying;
  watch_deadline(call);
  begin(state, asked);
  send(state, !active_.release_sent());
}

// A try of the head that is still unsent would leave right behind this release and win over everybody else, whatever
// the streak says. It becomes part of the release, or goes after its answer.
void name_machine::recall_unsent_try(owner_state const& from) {
  if (queue().empty() || !waiting().onward().hands_off()) return;
  operation& head = waiting().queue().head();
  owner_state& to = *head.of_owner;
  request const& asked = *to.ask_;
  bool const unsent = asked.what == ask::acquire && asked.where == request::place::outbox;
  if (&to == &from || asked.call != &head || !unsent || asked.repeated || asked.owes || asked.fix || !to.behind.empty())
    return;
  at_->requests.remove(to);
  finish(to);
  head.where = operation::place::waiting;
  waiting().recalled(to);
}

// One request for both: `from` is released and the waiter granted.
void name_machine::pair_up(owner_state& from, operation& waiter) {
  owner_state& to = *waiter.of_owner;
  request& leaving = from.ask_.pending();
  leaving.what = ask::hand_off;
  leaving.target = 0;
  leaving.partner = &to;
  request granted;
  granted.what = ask::hand_off;
  granted.grantee = true;
  granted.mode = waiter.mode;
  granted.target = 1;
  granted.lease = lease_for(waiter);
  granted.context = context_of(waiter.link);
  granted.amount = waiter.amount;
  granted.call = &waiter;
  granted.partner = &from;
  granted.ticket = queue().ticket();
  granted.where = leaving.where;
  begin(to, granted);
  waiter.where = operation::place::trying;
  waiting().paired();
  waiting().turns().count(shared_.now);
}

void name_machine::hand_over(owner_state& leaving, operation& head, bool may_go_direct) {
  at_->requests.remove(leaving);
  pair_up(leaving, head);
  send(leaving, may_go_direct);
}

// Nobody of this owner waits any more, and the server may still have it in its queue. A claim is the client's: it
// goes with the last that waits.
void name_machine::leave_line(owner_state& state) {
  if (!state.in_line || state.ask_->under_way() || state.queued > 0 || !state.behind.empty()) return;
  if (kind_->rules().claims && !queue().empty()) {
    state.in_line = false;
    queue().head().of_owner->in_line = true;
    return;
  }
  request asked;
  asked.what = ask::leave;
  asked.give_back = true;
  begin(state, asked);
  send(state, false);
}

// Makes the server's count what the owner still holds. Repeated until answered; it publishes, so that others hear.
void name_machine::give_back(owner_state& state, unsigned char mode, bool repeated) {
  if (!kind_->rules().takes) return;
  request asked;
  asked.what = ask::release;
  asked.give_back = true;
  asked.mode = mode;
  asked.target = state.live(mode);
  asked.repeated = repeated;
  asked.until = after(state.left_at, milliseconds(kind_->rules().remembers));
  begin(state, asked);
  send(state, false);
}

}  // namespace latchkey::detail
