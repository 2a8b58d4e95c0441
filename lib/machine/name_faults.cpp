#include <machine/name_machine.hpp>
#include <machine/outbox.hpp>
#include <machine/takeover.hpp>
#include <machine/watchdog.hpp>

#include <algorithm>
#include <vector>

namespace latchkey::detail {

// --- holds that end ---

// The hold is over without a release: its lease tells the holder, or the next unlock does.
void name_machine::lose(owner_state& state, hold& ended, error_code why) {
  if (ended.lost) return;
  tenure_.lost(state, ended.mode);
  if (!holders_.lose(state, ended, why)) return;
  shared_.lost_holds.push_back(&ended);
  if (shared_.lost_holds.size() <= context::most_lost) return;
  hold& oldest = *shared_.lost_holds.front();
  owner_state& of = *oldest.of;
  of.of.holders_.forget(of, oldest);
  if (&of.of != this)
    of.of.tidy(of);
  else
    shared_.serve(*this, of.owner);
}

// The server has nothing of it, or will have nothing.
void name_machine::lose_mode(owner_state& state, unsigned char mode, error_code why) {
  auto const next = [&] {
    return std::find_if(state.holds.begin(), state.holds.end(),
                        [&](auto const& h) { return h->mode == mode && !h->lost; });
  };
  if (next() != state.holds.end()) takeover::may_come_back(state, mode);
  for (auto h = next(); h != state.holds.end(); h = next()) lose(state, **h, why);
  holders_.stop_renewing(state, mode);
  end_extensions(state);
}

// A server that stands still answers long after a hold is over: whoever extends it is told now. Without a request under
// way nobody waits, but who stands behind the one that was just answered, and hears it in his turn.
void name_machine::end_extensions(owner_state& state) {
  if (!state.ask_->under_way()) return;
  std::vector<operation*> calls;
  if (operation* const call = state.ask_->call) calls.push_back(call);
  for (operation& call : state.behind) calls.push_back(&call);
  for (operation* call : calls)
    if (call->what == operation::type::extend && !holders_.lasts(state.find(call->hold))) give_up(*call, {});
}

// Belief and server may differ: "make it what I still hold". With a request under way its answer does it, or it
// is computed anew when it is sent.
void name_machine::repair(owner_state& state, unsigned char mode) {
  if (!state.ask_->under_way()) return give_back(state, mode);
  request& asked = state.ask_.pending();
  if (asked.where == request::place::outbox && lapsed(state)) {
    requeue(state, mode);
  } else if (asked.where != request::place::outbox || asked.what == ask::extend || asked.mode != mode) {
    asked.fix = static_cast<unsigned char>(asked.fix | 1u << mode);
    active_.note(state);
  } else {
    asked.owes = true;
  }
}

void name_machine::repair_modes(owner_state& state, unsigned modes) {
  for (unsigned char mode = 0; mode < kind_->rules().modes; ++mode)
    if (modes >> mode & 1u) repair(state, mode);
}

// A re-entry, and the holds that let it re-enter are gone.
bool name_machine::lapsed(owner_state const& state) const {
  request const& asked = *state.ask_;
  return asked.what == ask::acquire && asked.call && !asked.call->queued &&
         kind_->admit(asked.mode, state.live_by_mode()) != kind::admission::at_once;
}

// The server is told first, then the call queues like everybody.
void name_machine::requeue(owner_state& state, unsigned char mode, bool repeated) {
  operation& call = *state.ask_->call;
  unsigned const own = state.ask_->owes || state.ask_->repeated ? 1u << state.ask_->mode : 0u;
  unsigned const fix = state.ask_->fix | own;
  at_->requests.remove(state);
  finish(state);
  give_back(state, mode, repeated);
  repair_modes(state, fix & ~(1u << mode));
  state.behind.push_front(call);
  call.where = operation::place::behind_owner;
}

void name_machine::on_hold_deadline(hold& late) {
  if (late.deadline > shared_.now) return shared_.timers.set(late, late.deadline);
  owner_state& state = *late.of;
  lose_ended(state, late.mode);
  advance(state);
  waiting().wake();
  tidy_served();
}

void name_machine::lose_ended(owner_state& state, unsigned char mode) {
  auto const next = [&] {
    return std::find_if(state.holds.begin(), state.holds.end(),
                        [&](auto const& h) { return h->mode == mode && !h->lost && h->deadline <= shared_.now; });
  };
  // Nothing that this client has asked for lasts longer.
  instant const ends = after(shared_.now, shared_.settings.timeout + shared_.settings.clock_margin);
  bool any = false, stays = kind_->rules().by_id && state.over_at <= ends;
  for (auto h = next(); h != state.holds.end(); h = next()) {
    if ((*h)->renew_until <= (*h)->deadline) note(event_type::max_hold_reached, state.owner, {}, {}, {}, (*h)->context);
    stays = stays || (*h)->adopted || delay_of((*h)->link).count() > 0;
    lose(state, **h, errc::lease_lost);
    any = true;
  }
  if (!any) return;
  holders_.stop_renewing(state, mode);
  end_extensions(state);
  if (!stays || state.live(mode) > 0) return repair(state, mode);
  // What was asked to keep others out for longer is not given back, nor what another process may have extended: an
  // adopted hold, or one that whoever has its id may extend. An extension would make it shorter, and a re-entry that
  // comes too late would give it back.
  if (!state.ask_->under_way()) return;
  request& asked = state.ask_.pending();
  asked.on_left = asked.mode == mode && (lapsed(state) || asked.what == ask::extend);
  if (asked.on_left && asked.where == request::place::outbox) takeover::withdraw(state);
}

// --- force-unlock ---

// The server has removed whoever had the name when it ran. What was granted before it was sent is gone, and so is what
// the shared connection brought before its answer; what comes there later ran later. Of what the direct lane has
// brought since, or will bring, nobody knows whether it ran before: that is given up, and given back.
void name_machine::forced(operation const& by, instant sent) {
  active_.doubt_direct_tries();
  for (owner_state* state : holders_.all())
    for (unsigned char mode = 0; mode < kind_->rules().modes; ++mode) {
      if (by.argument && (mode != by.mode || field_of(*state, mode) != *by.argument)) continue;  // of one field alone
      bool const certain = std::all_of(state->holds.begin(), state->holds.end(),
                                       [&](auto const& h) { return h->mode != mode || h->lost || h->began < sent; });
      lose_mode(*state, mode, errc::lease_lost);
      if (!certain) repair(*state, mode);
    }
  for (owner_state* state : all_owners()) advance(*state);
  // Where messages are refused nobody else wakes it.
  waiting().new_head();
  waiting().wake();
  tidy_served();
}

void name_machine::doubt() {
  owner_state* const holder = tenure_.holder();
  // The release before it is often heard of behind the grant. As long as nobody waits, only what lasts is asked after.
  if (!holder || !queue().empty() || holder->ask_->under_way()) return ask_after_holder();
  tenure_.doubt();
  on_turn_due();
}

void name_machine::ask_after_holder() {
  owner_state* const holder = tenure_.holder();
  if (!holder) return;
  tenure_.doubt();
  if (tenure_.held()) repair(*holder, tenure_.mode());
}

void name_machine::on_turn_due() {
  instant const at = tenure_.confirm_at();
  if (at == never) return;
  if (at > shared_.now) return shared_.timers.set(tenure_.due(*this), at);
  if (owner_state& holder = *tenure_.holder(); !holder.ask_->under_way()) return give_back(holder, tenure_.mode());
  // Looks again when that may be answered.
  shared_.timers.set(tenure_.due(*this), after(shared_.now, tenure::unnoticed));
}

// --- requests without an answer ---

void name_machine::unanswered(owner_state& state, std::string_view text) {
  if (!state.ask_->under_way() || state.ask_->grantee) return;
  request& asked = state.ask_.pending();
  asked.where = request::place::in_doubt;
  asked.repeated = true;
  ++shared_.counters.in_doubt;
  ++shared_.counters.unanswered;
  if (asked.what == ask::hand_off) {
    asked.partner->ask_.pending().where = request::place::in_doubt;
    asked.partner->ask_.pending().repeated = true;
    count_attempt(asked.partner->ask_->call, errc::connection_lost, text, true);
  }
  count_attempt(state.ask_->call, errc::connection_lost, text, true);
  tidy_served();
}

bool name_machine::goes_again(owner_state const& state, instant now) {
  return state.ask_->what != ask::release || now < state.over_at;
}

void name_machine::waits_on(owner_state& state, server_error const& why, std::string_view text) {
  request const& asked = *state.ask_;
  if (asked.where != request::place::in_doubt) return;
  if (asked.partner) count_attempt(asked.partner->ask_->call, why.code, text, true);
  count_attempt(state.ask_->call, why.code, text, true);
  tidy_served();
}

// Late copies can no longer run: what was unanswered is an ordinary request again.
void name_machine::resolve(owner_state& state) {
  if (state.ask_->where != request::place::in_doubt || state.ask_->grantee) return;
  request& asked = state.ask_.pending();
  --shared_.counters.in_doubt;
  // A late copy may have run just now.
  for (owner_state* of : {&state, asked.partner})
    if (of && of->over_at != never) of->over_at += shared_.now - asked.sent;
  if (ends_doubtful_command(state)) return;
  if (asked.what == ask::hand_off && asked.partner->ask_->abandoned) {  // the grantee has left meanwhile
    owner_state& left = *asked.partner;
    unsigned char const mode = left.ask_->mode;
    unsigned const fix = left.ask_->fix;
    asked.what = ask::release;
    asked.partner = nullptr;
    finish(left);
    give_back(left, mode, true);
    repair_modes(left, fix);
  }
  asked.where = request::place::outbox;
  if (asked.on_left) {
    takeover::withdraw(state);
    advance(state);
    waiting().wake();
    return tidy(state);
  }
  if (lapsed(state)) return requeue(state, asked.mode, true);
  if (asked.what == ask::acquire && !asked.call) {  // nobody waits for it: what it did is given back instead
    unsigned char const mode = asked.mode;
    unsigned const fix = asked.fix;
    finish(state);
    give_back(state, mode, true);
    repair_modes(state, fix);
    if (!state.ask_->under_way()) {  // nothing was taken
      advance(state);
      waiting().wake();
      tidy(state);
    }
    return;
  }
  if (asked.partner) asked.partner->ask_.pending().where = request::place::outbox;
  at_->requests.add(state);
}

// The server executed nothing: the same goes again, behind the pause that the session makes. `why` is null for NOSCRIPT
// and redirections, which count for no attempt.
void name_machine::not_run(owner_state& state, server_error const* why, std::string_view text, home* elsewhere) {
  if (!state.ask_->under_way() || state.ask_->grantee) return;
  request& asked = state.ask_.pending();
  if (asked.what == ask::release && asked.target == 0) waiting().turns().go_on();
  asked.where = request::place::outbox;
  asked.sent_on.ask(elsewhere != nullptr);
  (elsewhere ? elsewhere : at_)->requests.add(state);
  owner_state* const partner = asked.partner;
  if (partner) partner->ask_.pending().where = request::place::outbox;
  for (request const* const sent : {&*state.ask_, partner ? &*partner->ask_ : &*state.ask_})
    if (sent->call && !sent->repeated) sent->call->unseen = false;
  if (why && asked.call) waiting().not_told(*asked.call);
  // Who left meanwhile is not asked for again.
  if ((asked.what == ask::acquire || asked.what == ask::command) && asked.abandoned)
    take_back(state);
  else if (partner && partner->ask_->abandoned)
    take_back(*partner);
  else if (asked.on_left)
    takeover::withdraw(state);
  else if (lapsed(state))
    requeue(state, asked.mode);
  if (why && state.ask_->partner) count_attempt(partner->ask_->call, why->code, text, why->transient);
  if (why) count_attempt(state.ask_->call, why->code, text, why->transient);
  advance(state);
  if (partner) advance(*partner);
  waiting().wake();
  if (partner) tidy(*partner);
  tidy(state);
  tidy_served();
}

void name_machine::trouble(error_code const& why, std::string_view text, bool transient) {
  for (operation* call : calls()) {
    if (call->where == operation::place::idle) continue;  // ended with another
    request const& asked = *call->of_owner->ask_;
    bool const sent = asked.where == request::place::shared || asked.where == request::place::direct;
    if (transient && sent && asked.call == call) continue;  // `unanswered` counts it
    count_attempt(call, why, text, transient);
  }
  for (owner_state* const state : holders_.all())
    for (unsigned char mode = 0; mode < kind_->rules().modes; ++mode)
      if (renewal* const due = state->known_renewal(mode); due && due->under_way && due->is_linked())
        note_at_risk(*due, why, text);
  tidy_served();
}

// A call without a wait of its own has only so many attempts. The words of a refusal stay with its code: calls that are
// not asked for are told both.
void name_machine::count_attempt(operation* call, error_code const& why, std::string_view text, bool transient) {
  if (!call) return;
  bool const goes_on = transient && (call->waits() || shared_.goes_on(*call, *at_));
  if (!text.empty() && !(goes_on && call->error)) call->text = text;
  if (!goes_on) give_up(*call, why);
}

}  // namespace latchkey::detail
