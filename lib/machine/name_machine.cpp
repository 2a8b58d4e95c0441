#include <machine/name_machine.hpp>

#include <machine/outbox.hpp>
#include <machine/request_writer.hpp>
#include <machine/takeover.hpp>
#include <machine/transfer.hpp>
#include <machine/watchdog.hpp>

#include <algorithm>
#include <cerrno>

namespace latchkey::detail {

name_machine::name_machine(context& shared, home& at, kind const& which, std::string_view name)
    : name_with_waiters(shared, at, which, name) {}

name_machine::~name_machine() {
  shared_.forget_served(*this);
  shared_.recent.forget(owners_);
}

owner_state& name_machine::state_of(std::uint64_t owner) {
  if (owner_state* const recent = shared_.recent.find(owners_, owner)) return *recent;
  owner_set::place where;
  owner_state* state = owners_.find(owner, where);
  if (!state) state = &shared_.spares.make(owners_, where, *this, owner);
  shared_.recent.note(owners_, *state);
  return *state;
}

bool name_machine::idle() const { return owners_.empty() && !waited_for(); }

// --- calls ---

// What most calls need, so that a caller for whom there is no memory is told so before anything has begun.
// Who holds what excludes others waits for nobody as long as that lasts.
owner_state& name_machine::prepare(operation const& call) {
  owner_state& state = state_of(call.owner);
  bool const stays_inside = kind_->rules().exclusive && state.live() > (call.what == operation::type::release ? 1 : 0);
  if (!stays_inside) waiting().make_room();
  shared_.served.reserve(shared_.served.size() + 1);
  if (!state.holds_now) holders_.make_room();
  state.ask_.make_room(state, shared_.spares.requests);
  return state;
}

void name_machine::unprepare(std::uint64_t owner) noexcept {
  owner_state* const state = known(owner);
  if (!state) return;
  state->ask_.leave_room(shared_.spares.requests);
  tidy(*state);
}

void name_machine::start(operation& call, owner_state* prepared) {
  owner_state& state = prepared ? *prepared : state_of(call.owner);
  call.of_owner = &state;
  arrive(state, call);
  state.ask_.leave_room(shared_.spares.requests);
  tidy_served();
}

// Per lock and owner one request is under way at a time: whoever comes meanwhile waits behind it.
void name_machine::arrive(owner_state& state, operation& call) {
  bool const first = state.ask_->under_way() && state.behind.empty() && queue().empty();
  if (first && waiting().onward().may_pass(state, call) && tenure_.count_chance()) {
    note(event_type::attempt, state.owner, {}, {}, {}, context_of(call.link));
    return pass_on(state, call);
  }
  // The answer needs no server: `yes` stays false.
  if (call.what == operation::type::adopt && transfer::ends(*this, call)) return complete(call);
  if (call.what == operation::type::extend && !holders_.lasts(state.find(call.hold))) return complete(call);
  bool const releases = call.what == operation::type::release;
  if (releases) takeover::make_way(state);
  bool const replaces = state.ask_->under_way() && replaces_unsent_release(state, call);
  unsigned const fix = replaces ? state.ask_->fix : 0u;
  unsigned char const mode = state.ask_->mode;
  if (replaces) {
    if (!state.ask_->give_back)
      note(event_type::released, state.owner, {}, {}, shared_.now - state.ask_->began, state.ask_->context);
    at_->requests.remove(state);
    finish(state);
    waiting().turns().count(shared_.now);
  } else if (state.ask_->under_way() || (!state.behind.empty() && !releases)) {
    state.behind.push_back(call);
    call.where = operation::place::behind_owner;
    watch_deadline(call);
    return;
  }
  dispatch(state, call);
  if (replaces && state.ask_->call == &call) state.ask_.pending().owes = true;
  if (replaces && !state.ask_->under_way()) give_back(state, mode);  // it cannot try yet
  if (fix != 0) repair_modes(state, fix);
  if (!state.behind.empty()) advance(state);  // what has made way
}

void name_machine::dispatch(owner_state& state, operation& call) {
  switch (call.what) {
    case operation::type::acquire: return acquire(state, call);
    case operation::type::release: return release(state, call);
    case operation::type::extend: return extend(state, call);
    case operation::type::command: return command(state, call);
    case operation::type::adopt: return transfer::adopt(*this, state, call);
    default: return complete(call, errc::bad_argument);
  }
}

// The owner's request has been answered: the next call of the same owner has its turn.
void name_machine::advance(owner_state& state) {
  tenure_.settle(state);
  while (!state.behind.empty() && !state.ask_->under_way()) {
    operation& next = state.behind.front();
    state.behind.pop_front();
    dispatch(state, next);
    takeover::let_release_pass(state);
  }
  if (shared_.released.owes_any()) takeover::catch_up(state);
  leave_line(state);
}

void name_machine::complete(operation& call, error_code error, std::string_view text) {
  call.where = operation::place::idle;
  if (call.what == operation::type::adopt) transfer::undo(*this, call);
  call.error = error;
  if (!text.empty()) call.text = text;
  shared_.explain(call, *at_);
  if (call.what == operation::type::acquire && !call.yes && !call.untried) note_gave_up(call);
  shared_.timers.drop(call.expiry);
  shared_.complete(call);
  shared_.serve(*this, call.owner);
}

void name_machine::watch_deadline(operation& call) {
  if (call.self_timed || call.deadline == never) return;
  call.expiry.what = timer_node::type::operation;
  call.expiry.of = &call;
  shared_.timers.set(call.expiry, call.deadline);
}

namespace {

// A try that is on its way when the wait of its call ends is awaited for a moment: its answer is worth more than a
// guess. So is a first one that leaves now, or that goes behind what this client has under way.
instant answer_awaited_until(owner_state const& state, operation const& call, bool connected) {
  request const& asked = *state.ask_;
  bool const leaves_now = asked.where == request::place::outbox && connected;
  bool const sent = asked.where == request::place::shared || asked.where == request::place::direct;
  bool const behind_others = call.where == operation::place::waiting && connected;
  if (call.late) return {};
  instant const late =
      sent && call.waits() ? after(std::min(asked.sent_at(), call.deadline), first_try_time) : instant{};
  if (!call.waited) return leaves_now || sent || behind_others ? std::max(call.limit(), late) : instant{};
  return call.where == operation::place::trying && call.unseen ? late : instant{};
}

// A try has become due since the last answer, and cannot be made, was refused, or left so long ago that no answer is
// awaited: whoever had it then may have it no more.
bool asks_in_vain(operation const& call, home const& at, instant awaited_from) {
  if (call.where == operation::place::waiting) return static_cast<bool>(call.error);
  if (call.where != operation::place::trying) return false;
  if (call.unseen) return call.of_owner->ask_->sent_at() <= awaited_from;
  return !at.away.words.empty() || !at.refusal.empty();
}

}  // namespace

void name_machine::expire(operation& call) {
  if (call.where == operation::place::idle) return;
  if (shared_.now < call.deadline) return watch_deadline(call);
  owner_state& state = *call.of_owner;
  if (call.what == operation::type::acquire) {
    // Who stands behind a head that was told so, or behind a hold of this client, need not have asked himself. But of
    // what has been asked for since, and not been answered, nobody knows what became.
    bool const busy = queue().busy_since_it_joined(call) || (!queue().empty() && queue().head().waited);
    bool const kept_out = holders_.keep_out(state, call.mode);
    operation const& asks = call.queued && !kind_->rules().own_channel ? queue().head() : call;
    instant const awaited_from = shared_.now - first_try_time;
    bool const parked =
        asks.where == operation::place::waiting && active_.in_doubt_from(awaited_from, kind_->rules(), asks.mode);
    bool const answered = kept_out || (!parked && !asks_in_vain(asks, *at_, awaited_from));
    bool const told_busy = answered && (call.waited || (call.queued && (busy || kept_out)));
    bool const known = told_busy && call.where == operation::place::waiting;
    instant const end = known ? instant{} : answer_awaited_until(state, call, shared_.counters.connected);
    if (end > shared_.now) {
      waiting().queue().wait_no_longer(call);
      call.deadline = end;
      return watch_deadline(call);
    }
    if (told_busy && !call.once && !call.unseen) {
      give_up(call, {});
    } else {
      if (call.queued && call.text.empty()) call.text = queue().head().text;
      give_up(call, errc::timeout);
    }
  } else {
    bool const in_vain = call.what == operation::type::extend && !holders_.lasts(state.find(call.hold));
    give_up(call, in_vain ? error_code() : errc::timeout);
  }
  tidy_served();
}

void name_machine::cancel(operation& call) {
  if (call.where == operation::place::idle || call.what != operation::type::acquire) return;
  give_up(call, error_code(ECANCELED, boost::system::system_category()));  // asio::error::operation_aborted
  tidy_served();
}

// --- requests ---

void name_machine::begin(owner_state& state, request what) {
  if (what.what == ask::acquire || what.grantee) {
    tenure_.settle(state);
    tenure_.stand_in(state, what.mode);
  }
  state.ask_.begin(state, std::move(what), shared_.spares.requests);
  active_.note(state);
}

// What is given back behind it may have to know when it left.
void name_machine::finish(owner_state& state) {
  active_.forget(state);
  state.left_at = state.ask_->first_sent;
  state.ask_.end(shared_.spares.requests);
  waiting().finished(state);
}

void name_machine::send(owner_state& state, bool may_go_direct) {
  request& asked = state.ask_.pending();
  auto& taken = shared_.lane_records;
  if (may_go_direct && shared_.lane_offered &&
      (taken.empty() || request_writer::leave_together(*taken.front(), state, at_->in_cluster))) {
    shared_.lane_offered = false;
    taken.push_back(&state);
    asked.where = request::place::direct;
    asked.sent = shared_.now;
    active_.note(state);
    if (asked.what == ask::hand_off) asked.partner->ask_.pending().where = request::place::direct;
    return;
  }
  asked.where = request::place::outbox;
  if (asked.what == ask::hand_off) asked.partner->ask_.pending().where = request::place::outbox;
  at_->requests.add(state);
}

// An owner state without anything in it goes.
void name_machine::tidy(owner_state& state) {
  if (!state.idle()) return;
  tenure_.forget(state);
  shared_.recent.forget(state);
  shared_.spares.take(owners_, state);
}

// An answer also ends calls of others; their states go when nothing in the step looks at them any more.
void name_machine::tidy_served() {
  for (auto const& [name, owner] : shared_.served)
    if (owner_state* state = name == this ? known(owner) : nullptr) {
      leave_line(*state);
      tidy(*state);
    }
  shared_.forget_served(*this);
  forget_waiting();
}

bool name_machine::prepare(owner_state& state, item& out, std::string& field, std::string& to_field) {
  request& asked = state.ask_.pending();
  if (asked.what == ask::release && state.live(asked.mode) == 0 && at_->passes_on(asked, shared_.now)) {
    recall_unsent_try(state);
    if (waiting().onward().can_hand_off(state)) pair_up(state, waiting().queue().head());
  }
  if (asked.what == ask::release || asked.what == ask::renew) {
    asked.target = state.live(asked.mode);
    // At least one: a hold may have run out unnoticed.
    auto const stays = std::max<std::int64_t>(state.longest(asked.mode, shared_.now, shared_.settings), 1);
    asked.lease = asked.target > 0 || asked.what == ask::renew ? stays : 0;
    if (asked.lease == 0 && !waiting().onward().unsent_try()) waiting().turns().end();
  } else if (asked.what == ask::extend) {
    hold* extended = state.find(asked.extends);
    bool const live = holders_.lasts(extended);
    if (live)
      holders_.move_end(*extended, std::min(extended->deadline, shared_.trusted_end(shared_.now, asked.wanted)));
    auto const others = state.longest(asked.mode, shared_.now, shared_.settings, extended);
    asked.lease = std::max<std::int64_t>(live ? (asked.wanted + delay_of(extended->link)).count() : 1, others);
  }
  if (asked.what == ask::command) foresee(asked);
  asked.leaves(shared_.now);
  (asked.partner ? asked.partner->ask_.pending() : asked).ticket = queue().ticket();
  field.clear();
  add_field(field, state, asked.mode);
  out.what = asked.what;
  out.mode = asked.mode;
  out.name = name_;
  out.target = asked.target;
  out.lease = asked.lease;
  out.command = asked.command;
  out.amount = asked.amount;
  if (asked.argument) out.argument = *asked.argument;
  out.repeated = asked.repeated;
  if (asked.what == ask::hand_off) {
    owner_state const& to = *asked.partner;
    to_field.clear();
    add_field(to_field, to, to.ask_->mode);
    out.lease = to.ask_->lease;
    out.to_field = to_field;
  }
  if (asked.what == ask::acquire) asked.target = out.target = state.live(asked.mode) + 1;
  tenure_.sent(state, asked);
  owner_state& tries = asked.what == ask::hand_off ? *asked.partner : state;
  // Zero: what it takes has no end of its own. A release to nothing sets no time.
  auto const lease = asked.what == ask::hand_off ? tries.ask_->lease : asked.lease;
  if (lease > 0)
    tries.lasts_until(after(shared_.now, shared_.settings.timeout + milliseconds(lease)));
  else if (asked.what == ask::acquire || asked.what == ask::hand_off)
    tries.lasts_until(never);
  operation* const call = tries.ask_->call;
  if (call) call->unseen = true;
  if (call && (asked.what == ask::acquire || asked.what == ask::hand_off)) {
    if (!tries.in_line) tries.line_time = call->line_time;
    if (call->queued && !call->asks_once()) {
      out.wait = left(shared_.now, call->deadline).count();
      out.enters_line = kind_->rules().own_channel || (kind_->rules().claims && asked.amount > 1);
      tries.in_line = tries.in_line || out.enters_line;
    }
  }
  out.line_time = tries.line_time.count();
  out.field = field;
  return true;
}

// --- what is known of the name ---

// A mode that both may hold is waited for all the same behind a waiter who is kept out.
bool name_machine::keeps_out(std::uint64_t owner, unsigned char mode) const {
  owner_state const* const state = known(owner);
  if (!state || state->live() == 0) return false;
  return holders_.excludes(*state, mode) || std::any_of(queue().begin(), queue().end(), [&](operation const& call) {
           return holders_.excludes(*state, call.mode);
         });
}

// Kinds may keep the same data under one name. An owner who has something there through two of them would be taken for
// himself by the server, and what he ends of one would end the other.
name_machine* name_machine::in_use_elsewhere(std::uint64_t owner) const {
  for (name_machine* other = &next(); other != this; other = &other->next()) {
    if (other->tenure_.lent(owner)) return other;
    owner_state const* const same = other->known(owner);
    if (same && (same->live() > 0 || same->ask_->under_way() || same->queued > 0 || !same->behind.empty()))
      return other;
  }
  return nullptr;
}

}  // namespace latchkey::detail
