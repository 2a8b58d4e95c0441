#include <machine/name_machine.hpp>
#include <machine/outbox.hpp>
#include <machine/takeover.hpp>
#include <machine/watchdog.hpp>

#include <algorithm>

namespace latchkey::detail {

void name_machine::release(owner_state& one, operation& call) {
  hold* ended = call.hold != 0 ? one.find(call.hold) : one.latest(call.mode);
  if (!ended) return complete(call, errc::not_owner, one.live(call.mode) > 0 ? only_its_lease : std::string_view());
  if (ended->lost) {
    holders_.forget(one, *ended);
    return complete(call, errc::lease_lost);
  }
  bool const inner = one.live(ended->mode) > 1;
  if (end_turn(one, *ended)) {
    call.released = inner ? release_result::still_held : release_result::released;
    return complete(call);
  }
  call.where = operation::place::trying;
  watch_deadline(call);
  begin_release(one, *ended, &call);
  // Who waits here gets it in the same request; else it goes directly if nothing else of this name is on the way.
  if (one.live(one.ask_.mode) == 0 && waiters_->can_hand_off(one)) {
    pair_up(one, queue().head());
    send(one, true);
  } else {
    send(one, !active_.release_sent());
  }
}

// A lease went away: nobody waits for its release.
void name_machine::drop(std::uint64_t owner, hold_id which) {
  owner_state* one = known(owner);
  hold* ended = one ? one->find(which) : nullptr;
  if (!ended) return;
  if (shared_.closed())  // left to its lease
    holders_.forget(*one, *ended);
  else
    end_unawaited(*one, *ended);
  tidy(*one);
  tidy_served();
}

void name_machine::end_unawaited(owner_state& one, hold& ended) {
  if (ended.lost) return holders_.forget(one, ended);
  takeover::make_way(one);
  if (!one.ask_.under_way()) {
    if (end_turn(one, ended)) return one.behind.empty() ? void() : advance(one);
    begin_release(one, ended, nullptr);
    return send(one, false);
  }
  // The release comes after the request under way: what that leaves on the server is then repaired.
  unsigned char const mode = ended.mode;
  holders_.forget(one, ended);
  holders_.stop_renewing(one, mode);
  repair(one, mode);
}

void name_machine::unlink(std::uint64_t owner, hold_id which) {
  owner_state* one = known(owner);
  hold* const shown = one ? one->find(which) : nullptr;
  if (!shown || !shown->link) return;
  shown->link = nullptr;
  --shared_.shown;
}

void name_machine::renew_no_longer(std::uint64_t owner, hold_id which) {
  owner_state* const one = known(owner);
  hold* const held = one ? one->find(which) : nullptr;
  if (!held) return;
  held->watchdog = false;
  holders_.stop_renewing(*one, held->mode);
}

void name_machine::thread_ended(std::uint64_t owner) {
  owner_state* const one = known(owner);
  if (!one) return;
  for (auto const& held : one->holds) {
    if (held->lost || held->leased) continue;
    note(event_type::holder_thread_ended, owner, {}, {}, holders_.rest_of(*held));
    held->watchdog = false;
  }
  for (unsigned char mode = 0; mode < kind_.rules().modes; ++mode) holders_.stop_renewing(*one, mode);
}

// The server need not be told yet: the owner has more of it, or the next one in turn has it.
bool name_machine::end_turn(owner_state& one, hold& ended) {
  if (!tenure_.is_of(one) || ended.lost) return false;
  if (shared_.timers.first() <= shared_.now) return false;  // another hold may have ended unnoticed
  bool const inner = one.live(ended.mode) > 1;
  operation* const next = !inner && queue().head_idle() ? &queue().head() : nullptr;
  if (!inner && !(next && tenure_.may_pass(one, *next))) return false;
  note(event_type::released, one.owner, {}, {}, shared_.now - ended.began, ended.context);
  unsigned char const mode = ended.mode;
  holders_.forget(one, ended);
  holders_.stop_renewing(one, mode);
  if (next)
    pass_on(one, *next);
  else
    tenure_.count_moved();
  shared_.timers.set_lazily(turn_due_, tenure_.confirm_at());
  return true;
}

void name_machine::begin_release(owner_state& one, hold& ended, operation* call) {
  request asked;
  asked.what = ask::release;
  asked.mode = ended.mode;
  asked.until = ended.deadline;
  asked.began = ended.began;
  asked.context = ended.context;
  asked.call = call;
  holders_.forget(one, ended);
  holders_.stop_renewing(one, asked.mode);
  asked.target = one.live(asked.mode);
  begin(one, asked);
}

void name_machine::extend(owner_state& one, operation& call) {
  hold* extended = one.find(call.hold);
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
  holders_.stop_renewing(one, asked.mode);
  call.where = operation::place::trying;
  watch_deadline(call);
  begin(one, asked);
  send(one, !active_.release_sent());
}

// A try of the head that is still unsent would leave right behind this release and win over everybody else, whatever
// the streak says. It becomes part of the release, or goes after its answer.
void name_machine::recall_unsent_try(owner_state const& from) {
  if (!waiters_->hands_off() || queue().empty()) return;
  operation& head = queue().head();
  owner_state& to = *head.of_owner;
  request const& asked = to.ask_;
  bool const unsent = asked.what == ask::acquire && asked.where == request::place::outbox;
  if (&to == &from || asked.call != &head || !unsent || asked.repeated || asked.owes || asked.fix || !to.behind.empty())
    return;
  at_->requests.remove(to);
  finish(to);
  head.where = operation::place::waiting;
  waiters_->recalled(to);
}

// One request for both: `from` is released and the waiter granted.
void name_machine::pair_up(owner_state& from, operation& waiter) {
  owner_state& to = *waiter.of_owner;
  from.ask_.what = ask::hand_off;
  from.ask_.target = 0;
  from.ask_.partner = &to;
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
  granted.where = from.ask_.where;
  begin(to, granted);
  waiter.where = operation::place::trying;
  waiters_->paired();
  waiters_->turns().count(shared_.now);
}

void name_machine::hand_over(owner_state& leaving, operation& head, bool may_go_direct) {
  at_->requests.remove(leaving);
  pair_up(leaving, head);
  send(leaving, may_go_direct);
}

// Nobody of this owner waits any more, and the server may still have it in its queue.
void name_machine::leave_line(owner_state& one) {
  if (!one.in_line || one.ask_.under_way() || one.queued > 0 || !one.behind.empty()) return;
  request asked;
  asked.what = ask::leave;
  asked.give_back = true;
  begin(one, asked);
  send(one, false);
}

// Makes the server's count what the owner still holds. Repeated until answered; it publishes, so that others hear.
void name_machine::give_back(owner_state& one, unsigned char mode, bool repeated) {
  if (!kind_.rules().takes) return;
  request asked;
  asked.what = ask::release;
  asked.give_back = true;
  asked.mode = mode;
  asked.target = one.live(mode);
  asked.repeated = repeated;
  asked.until = after(one.ask_.first_sent, milliseconds(kind_.rules().remembers));
  if (asked.target == 0) ++shared_.counters.given_back;
  begin(one, asked);
  send(one, false);
}

}  // namespace latchkey::detail
