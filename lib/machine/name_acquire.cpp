#include <machine/name_machine.hpp>
#include <machine/outbox.hpp>
#include <machine/watchdog.hpp>

#include <algorithm>

namespace latchkey::detail {

namespace {

constexpr std::string_view held_too_often = "held too often";

constexpr std::string_view answered_late = "the lease had ended before its answer came";

// A grant that replicas did not confirm is nobody's. The pause was in the WAIT, unless that was refused: for good.
bool goes_on_unsynced(operation& call, outcome const& answer, int attempts) {
  call.text = answer.text.empty() ? too_few_replicas : answer.text;
  return answer.text.empty() && !call.late && (call.waits() || ++call.attempts <= static_cast<unsigned>(attempts));
}

// The answer has come after the lease that was asked for. Of a joint lock's member that lock decides.
bool goes_on_late(operation& call, outcome const& answer) {
  if (answer.unsynced || !call.waits() || call.late || call.member) return false;
  call.text = answered_late;
  return true;
}

}  // namespace

void name_machine::acquire(owner_state& state, operation& call) {
  note(event_type::attempt, state.owner, {}, {}, {}, context_of(call.link));
  if (state.holds.size() >= owner_state::most_holds) return complete(call, errc::bad_argument, held_too_often);
  if (name_machine const* const other = in_use_elsewhere(state.owner))
    return complete(call, errc::bad_argument,
                    "the owner has this name already as a " + std::string(other->which().rules().name));
  switch (kind_->admit(call.mode, state.live_by_mode())) {
    // An owner who holds it never queues behind others: they wait for him.
    case kind::admission::at_once:
      if (tenure_.may_reenter(state, call) && tenure_.count_chance()) return begin_turn(state, call);
      return send_acquire(call, !active_.release_sent());
    case kind::admission::queue: watch_deadline(call); return waiting().join(state, call);
    case kind::admission::already_held: return complete(call, errc::already_held);
    case kind::admission::too_often: return complete(call, errc::bad_argument, held_too_often);
    case kind::admission::would_deadlock: return complete(call, errc::would_deadlock);
  }
}

// The same owner comes back while the release of his dropped lease still waits to be sent: "make it 1" says it all.
// It is a hand-off to himself, and ends with the streak. Where the server keeps a line he joins that behind all others;
// what is released in a field that is not his says nothing of his own.
bool name_machine::replaces_unsent_release(owner_state const& state, operation const& call) {
  request const& asked = *state.ask_;
  // What stays behind a deadline stands in the field of who comes back.
  bool const in_anothers =
      tenure_.will_settle(state) || (state.field != state.owner && delay_of(call.link).count() > 0);
  if (call.what != operation::type::acquire || asked.what != ask::release || asked.where != request::place::outbox ||
      asked.call || asked.mode != call.mode || state.live() > 0 || !state.behind.empty() || !queue().empty() ||
      !kind_->rules().exclusive || kind_->rules().own_channel || in_anothers ||
      !waiting().turns().allows(shared_.settings.local_handoff, shared_.now) || shared_.barred.has(state))
    return false;
  return !active_.dropped_release(state) && !in_doubt(call.mode);
}

void name_machine::send_acquire(operation& call, bool may_go_direct) {
  owner_state& state = *call.of_owner;
  request asked;
  asked.what = ask::acquire;
  asked.mode = call.mode;
  asked.target = state.live(call.mode) + 1;
  asked.lease = lease_for(call);
  asked.amount = call.amount;
  asked.argument = call.argument;
  asked.call = &call;
  asked.ticket = queue().ticket();
  asked.context = context_of(call.link);
  begin(state, asked);
  call.where = operation::place::trying;
  if (!call.queued) watch_deadline(call);
  send(state, may_go_direct);
}

// Zero: a hold that ends with its release only.
std::int64_t name_machine::lease_for(operation const& call) const {
  milliseconds const delay = delay_of(call.link);
  // Long enough for the next one in turn, if there is one.
  if (call.lease.count() > 0) return (call.lease + delay + tenure_.beyond(call, queue().size())).count();
  if (!kind_->rules().renews) return 0;
  milliseconds const whole = shared_.settings.lock_watchdog_timeout;
  milliseconds const bounded = call.max_hold + shared_.settings.clock_margin;
  return ((call.max_hold.count() > 0 ? std::min(bounded, whole) : whole) + delay).count();
}

// The server has granted what `was` asked for. `sent` is when the answered copy left. What it built upon may be gone
// meanwhile: then all is given back, and it tries anew.
void name_machine::granted(owner_state& state, request const& was, instant sent, outcome const& answer) {
  operation* call = was.abandoned ? nullptr : was.call;
  milliseconds const delay = delay_of(call ? call->link : nullptr);  // on the server alone
  instant const deadline = was.lease <= 0 ? never : shared_.trusted_end(sent, milliseconds(was.lease) - delay);
  auto const& rules = kind_->rules();
  bool const outer_lost = was.doubtful || (was.target > 1 && state.live(was.mode) != was.target - 1);
  bool const heard = waiting().heard();
  state.in_line = false;

  if (rules.exclusive && was.target == 1) {  // whoever else believed to keep it out has lost that on the server
    for (owner_state* other : holders_.all())
      if (other != &state) {
        for (unsigned char mode = 0; mode < rules.modes; ++mode)
          if (other->live(mode) > 0 && !rules.shares(was.mode, mode)) {
            lose_mode(*other, mode, errc::lease_lost);
            repair(*other, mode);
          }
      }
  }

  if (!call || deadline <= shared_.now || outer_lost || answer.unsynced) {
    if (kind_->rules().takes) note(event_type::abandoned, state.owner, {}, {}, {}, was.context);
    if (!was.on_left) repair(state, was.mode);
    if (!call) return;
    bool const was_head = queue().is_head(*call);
    waiting().leave(*call);
    bool const waits = answer.unsynced && goes_on_unsynced(*call, answer, shared_.settings.retry_attempts);
    bool const again = deadline > shared_.now ? outer_lost || waits : goes_on_late(*call, answer);
    if (again) {  // the count is repaired first, then it tries anew
      state.behind.push_back(*call);
      call->where = operation::place::behind_owner;
    } else if (answer.unsynced) {
      complete(*call, errc::not_synced);
    } else {
      complete(*call, errc::timeout, answered_late);
    }
    if (was_head) waiting().new_head();
    return;
  }

  bool const keeps = call->keeps;
  if (keeps) {
    if (shared_.may_move && !state.client) shared_.released.forget(state, was.mode);
    instant const own_end = call->lease.count() > 0 ? std::min(deadline, after(sent, call->lease)) : deadline;
    holders_.keep(state, *call, was.mode, sent, own_end);
    tenure_.granted(state, was, deadline);
    waiting().had();
  }
  bool const was_queued = call->queued;
  call->token = answer.token;
  waiting().served(*call);
  if (keeps) waiting().let_in_others(state);

  unsigned kept_out_modes = 0;
  for (unsigned char mode = 0; mode < rules.modes; ++mode)
    if (rules.exclusive && !rules.shares(was.mode, mode)) kept_out_modes |= 1u << mode;
  waiting().finish_once_calls(queue().ticket(), kept_out_modes);
  if (rules.grant_for_all) waiting().serve_all(was.ticket);
  if (was_queued && !queue().empty()) waiting().granted(was, answer, deadline, heard);
}

// A hold that the server need not be asked for.
void name_machine::begin_turn(owner_state& state, operation& call) {
  holders_.keep(state, call, call.mode, shared_.now, tenure_.end_of(call));
  tenure_.count_moved();
  shared_.timers.set_lazily(tenure_.due(*this), tenure_.confirm_at());
  if (call.queued) return waiting().served(call);
  grant(call);
  complete(call);
}

void name_machine::pass_on(owner_state& from, operation& call) {
  owner_state& to = *call.of_owner;
  operation* const ended = from.ask_->call;
  bool const released = from.ask_->what == ask::release && !from.ask_->give_back;  // not, if its end was told before
  instant const began = from.ask_->began;
  auto const context = from.ask_->context;
  if (from.ask_->under_way()) {  // a release that has not left
    at_->requests.remove(from);
    finish(from);
  }
  bool const was_queued = call.queued;
  bool const heard = waiting().heard();
  waiting().turns().count(shared_.now);
  waiting().paired();
  tenure_.pass(from, to);
  shared_.recent.note(owners_, to);
  ++shared_.counters.handed_off;
  ++tally_.handed_off;
  note(event_type::handed_off, to.owner, {}, {}, {}, context_of(call.link));
  begin_turn(to, call);
  if (released) note(event_type::released, from.owner, {}, {}, shared_.now - began, context);
  if (ended) {
    ended->released = release_result::released;
    complete(*ended);
  }
  waiting().let_in_others(to);
  waiting().finish_once_calls(queue().ticket());
  if (was_queued && !queue().empty()) waiting().granted({.mode = call.mode}, {}, tenure_.end_of(call), heard);
  if (&to == &from) return;
  shared_.serve(*this, from.owner);
  advance(to);
  advance(from);
}

// Another of its bundle was busy: nothing is known of this lock, and nothing was done.
void name_machine::untried(request const& was) {
  if (!was.call || was.abandoned) return;
  operation& call = *was.call;
  bool const was_head = queue().is_head(call);
  waiting().leave(call);
  call.unseen = was.repeated;
  call.untried = true;
  complete(call);
  if (was_head) waiting().new_head();
}

// The caller goes; what he asked for may still happen, and is then given back.
void name_machine::give_up(operation& call, error_code error) {
  if (call.where == operation::place::idle) return;  // ended meanwhile, by what became of another call
  owner_state& state = *call.of_owner;
  bool const was_head = queue().is_head(call);
  bool const tried = call.where == operation::place::trying;
  bool const slept = !tried && call.waited && call.tried && !call.error;
  switch (call.where) {
    case operation::place::behind_owner: {
      state.behind.erase(state.behind.iterator_to(call));
      if (call.what != operation::type::release) break;
      // Whoever gives up waiting for a release still wants it.
      hold* const ended = call.hold != 0 ? state.find(call.hold) : state.latest(call.mode);
      if (ended) end_unawaited(state, *ended);
      break;
    }
    case operation::place::trying:
      state.ask_.pending().call = nullptr;
      take_back(state);
      break;
    default: break;
  }
  waiting().leave(call);
  // What goes on behind has not been done, and will be.
  bool const open = call.goes_on() && error && !may_still_be_held(error);
  complete(call, open ? error_code(errc::connection_lost) : error);
  if (was_head) waiting().new_head(slept ? &call : nullptr);
  advance(state);
  // What made it try has not been followed, and another call of this owner may wait for the same.
  if (tried) waiting().gave_up(state);
}

// Nobody waits for this request any more. One that was never sent goes; else its effect is given back.
void name_machine::take_back(owner_state& state) {
  request& asked = state.ask_.pending();
  bool const command = asked.what == ask::command && !kind_->rules_of(asked.command).persists;
  if (asked.what != ask::acquire && !asked.grantee && !command) return;  // releases and extensions go on
  asked.abandoned = true;
  active_.note(state);
  if (asked.where != request::place::outbox) return;
  if (command) {
    at_->requests.remove(state);
    return finish(state);
  }
  waiting().remember(wake_up::taken_back);
  bool const clean = !asked.may_stand();
  unsigned char const mode = asked.mode;
  unsigned const fix = asked.fix;
  bool const repeated = asked.repeated;
  if (asked.grantee) {  // the hand-off becomes the release that it was, for the same caller
    owner_state& from = *asked.partner;
    at_->requests.remove(from);
    from.ask_.pending().what = ask::release;
    from.ask_.pending().partner = nullptr;
    at_->requests.add(from);
  } else {
    at_->requests.remove(state);
  }
  finish(state);
  if (!clean) give_back(state, mode, repeated);
  repair_modes(state, fix);
}

void name_machine::fail_acquire(owner_state& state, request const& was, outcome const& answer) {
  // An answer without sense may stand for a grant, as an earlier copy that was never answered does.
  bool const senseless = answer.what == outcome::type::malformed && answer.text.empty();
  if (was.call) was.call->unseen = was.repeated || senseless;
  fail_acquire(state, was, error_of(answer), words_of(answer));
}

// An acquire that did nothing on the server ends with an error, or, if it may wait and the trouble may pass, tries
// again.
void name_machine::fail_acquire(owner_state& state, request const& was, error_code error, std::string_view text) {
  if (!was.call || was.abandoned) return;
  operation& call = *was.call;
  bool const was_head = queue().is_head(call);
  if (call.queued && !call.asks_once() && classify(text).transient) {
    call.where = operation::place::waiting;
    call.tried = true;
    call.error = error;
    call.text = text;
    ++call.polls;
    return waiting().put_off(state, was, shared_.pause(call.polls, shared_.settings.retry_delay));
  }
  waiting().leave(call);
  complete(call, error, text);
  if (was_head) waiting().new_head();
}

}  // namespace latchkey::detail
