#include <machine/name_machine.hpp>
#include <machine/outbox.hpp>

namespace latchkey::detail {

namespace {

constexpr auto too_late = "the connection was lost, and whether the request ran is no longer known";

}  // namespace

// Something of the kind's own that is neither taking nor giving back: one request, no queue.
void name_machine::command(owner_state& state, operation& call) {
  request asked;
  asked.what = ask::command;
  asked.mode = call.mode;
  asked.command = call.command;
  asked.amount = call.amount;
  asked.lease = call.lease.count();
  asked.argument = call.argument;
  asked.call = &call;
  call.where = operation::place::trying;
  watch_deadline(call);
  begin(state, std::move(asked));
  send(state, true);
}

// Whose hold it is about, if a lease of this client shows it.
owner_state* name_machine::concerned(request const& asked) const {
  if (asked.what != ask::command || !asked.argument) return nullptr;
  return known(kind_->concerns(asked.command, *asked.argument, shared_.client_id));
}

// What a command is about to take from a hold of this client is not shown any more when the server does it.
void name_machine::foresee(request const& asked) {
  owner_state* const shown = concerned(asked);
  if (!shown) return;
  if (!kind_->rules_of(asked.command).shortens) return lose_mode(*shown, asked.mode, errc::lease_lost);
  instant const end = shared_.trusted_end(shared_.now, milliseconds(asked.lease));
  for (auto const& h : shown->holds)
    if (!h->lost && h->deadline > end) holders_.move_end(*h, end);
}

// A longer end counts from the answer. What was given up for a command that did not run is given back.
void name_machine::on_end_moved(request const& was, outcome const& answer) {
  owner_state* const shown = concerned(was);
  if (!shown) return;
  bool const done = answer.what == outcome::type::done;
  if (!kind_->rules_of(was.command).shortens) return done ? void() : repair(*shown, was.mode);
  if (done && answer.value == 0) return lose_mode(*shown, was.mode, errc::lease_lost);
  if (answer.unsynced) return;
  instant const end = shared_.trusted_end(was.sent, milliseconds(was.lease));
  for (auto const& h : shown->holds)
    if (done && holders_.lasts(h.get()) && h->deadline < end) holders_.move_end(*h, end);
}

void name_machine::on_command_answer(owner_state& state, outcome const& answer) {
  request const was = *state.ask_;
  finish(state);
  repair_modes(state, was.fix | (was.owes ? 1u << was.mode : 0u));
  if (answer.not_published) note(event_type::publish_refused, state.owner);
  if (answer.what == outcome::type::unseen) return on_unseen(state, was);
  on_end_moved(was, answer);
  if (was.call) was.call->unseen = was.repeated;
  // Also if its caller has left meanwhile.
  if (kind_->rules_of(was.command).shortens && !queue().empty()) waiting().remember(wake_up::end_moved);
  if (!was.call) {
    if (answer.what != outcome::type::done) note(event_type::warning, state.owner, error_of(answer), words_of(answer));
    return;
  }
  if (answer.what != outcome::type::done) return complete(*was.call, error_of(answer), words_of(answer));
  if (answer.unsynced && kind_->rules_of(was.command).shortens)
    return complete(*was.call, errc::not_synced, answer.text.empty() ? too_few_replicas : answer.text);
  was.call->yes = true;
  was.call->value = answer.value;
  complete(*was.call);
}

// There is nothing to be given back. Or the server no longer knows what was taken, and nobody can.
void name_machine::on_unseen_give_back(owner_state& state, outcome answer) {
  if (shared_.now >= state.ask_->until) note(event_type::permit_lost, state.owner, errc::connection_lost, too_late);
  answer.what = outcome::type::absent;
  on_release_answer(state, answer);
}

// The answer to a repeated request: its earlier copy did not run, so that it goes as if for the first time. But after
// some time the server has forgotten what it ran, and this answer says nothing.
void name_machine::on_unseen(owner_state& state, request const& was) {
  bool const certain = shared_.now < after(was.first_sent, milliseconds(kind_->rules().remembers));
  if (was.call && certain) was.call->unseen = false;
  bool const wanted = was.call ? !was.abandoned : was.what == ask::command && kind_->rules_of(was.command).persists;
  if (certain && wanted && !state.ask_->under_way()) {
    request again = was;
    again.repeated = false;
    if (was.call) was.call->where = operation::place::trying;
    begin(state, std::move(again));
    return send(state, false);
  }
  if (certain && !wanted) return;
  on_end_moved(was, {});
  if (was.what == ask::acquire && kind_->rules().takes)
    note(event_type::permit_lost, state.owner, errc::connection_lost, too_late);
  if (!was.call || was.abandoned)
    note(event_type::warning, state.owner, errc::connection_lost, too_late);
  else if (was.what == ask::acquire)
    fail_acquire(state, was, errc::connection_lost, too_late);
  else
    complete(*was.call, errc::connection_lost, too_late);
}

// Late copies of a command can no longer run. True: it ends here, because it must not go again or nobody wants it.
bool name_machine::ends_doubtful_command(owner_state& state) {
  request const& asked = *state.ask_;
  auto const rules = kind_->rules_of(asked.command);
  if (asked.what != ask::command || (rules.repeats && (asked.call || rules.persists))) return false;
  operation* const call = asked.call;
  unsigned const fix = asked.fix;
  finish(state);
  repair_modes(state, fix);
  if (call) complete(*call, errc::connection_lost, "the answer was lost: it ran or it did not");
  advance(state);
  tidy(state);
  tidy_served();
  return true;
}

}  // namespace latchkey::detail
