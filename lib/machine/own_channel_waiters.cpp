#include <machine/waiters.hpp>

#include <algorithm>

namespace latchkey::detail {

namespace {

constexpr std::int64_t near_hint = 1'000;  // milliseconds
constexpr milliseconds looks_together{50};

}  // namespace

own_channel::own_channel(own_channel_waiters& in, owner_state& of, std::string channel)
    : in_(in), of_(of), channel_(std::move(channel)) {
  hint.what = timer_node::type::own_hint;
  hint.of = this;
  in_.of_.at_->channels.want(channel_, *this);
}

own_channel::~own_channel() {
  in_.of_.shared_.timers.drop(hint);
  in_.of_.at_->channels.drop(channel_, *this);
}

void own_channel::on_confirmed() { in_.wake(of_); }

void own_channel::on_message(std::string_view payload) {
  ++in_.of_.shared_.counters.messages;
  if (in_.of_.kind_->wakes(payload)) in_.wake(of_);
}

void own_channel::on_refused() { in_.wake(of_); }

void own_channel::ask_again() { in_.of_.at_->channels.ask_refused(channel_); }

void own_channel::on_hint() {
  if (operation* const call = own_channel_waiters::waiter_of(of_)) ++call->polls;
  in_.wake(of_);
}

void own_channel::move(home& from) {
  from.channels.drop(channel_, *this);
  in_.of_.at_->channels.want(channel_, *this);
}

void own_channel_waiters::move(home& from) {
  for (owner_state& state : of_.owners_)
    if (state.own) state.own->move(from);
}

void own_channel_waiters::make_room() {
  if (parked_.capacity() == parked_.size()) parked_.reserve(2 * parked_.size());
}

void own_channel_waiters::join(owner_state& state, operation& call) {
  if (told_at_once(state, call)) return;
  enter(call);
  wake(state);
}

void own_channel_waiters::leave(operation& call) {
  if (!call.queued) return;
  waiters::leave(call);
  if (call.of_owner->queued == 0) call.of_owner->own.reset();
}

operation* own_channel_waiters::waiter_of(owner_state& state) {
  bool const waits = state.waits && !state.ask_->under_way() && state.waits->where == operation::place::waiting;
  return waits ? state.waits : nullptr;
}

// What woke this one could not be followed now: the next answer makes it look again.
void own_channel_waiters::park(owner_state& state) {
  if (state.queued == 0 || std::exchange(state.parked, true)) return;
  parked_.push_back(state.owner);
}

void own_channel_waiters::wake(owner_state& state) {
  operation* const call = waiter_of(state);
  if (!call || of_.in_doubt(call->mode)) {
    if (state.own) state.own->dirty = true;
    return park(state);
  }
  if (state.own) {
    state.own->dirty = false;
    of_.shared_.timers.drop(state.own->hint);
  }
  auto& active = of_.active_;
  of_.send_acquire(*call, queue_.size() == 1 && !active.release_sent() && !active.unsent_release(state));
}

// The answer that resolves the name makes those try who waited for it.
void own_channel_waiters::wake() {
  if (parked_.empty() || of_.in_doubt(0)) return;  // such a kind has one mode
  for (std::uint64_t const owner : std::exchange(parked_, {})) {
    owner_state* const state = of_.owners_.find(owner);
    if (!state) continue;
    state->parked = false;
    operation const* const call = waiter_of(*state);
    if (call && (!call->tried || (state->own && state->own->dirty))) wake(*state);
  }
}

void own_channel_waiters::told_busy(owner_state& state, request const& was, std::int64_t hint, bool stays, bool) {
  if (hint < 0) of_.note(event_type::no_time_to_live);
  if (stays) wait(state, was.mode, hint);
}

void own_channel_waiters::put_off(owner_state& state, request const& was, milliseconds pause) {
  wait(state, was.mode, pause.count());
}

void own_channel_waiters::gave_up(owner_state& state) {
  if (state.own) wake(state);
}

void own_channel_waiters::recalled(owner_state& state) {
  if (state.own) state.own->dirty = true;
}

void own_channel_waiters::wait(owner_state& state, unsigned char mode, std::int64_t hint) {
  if (!state.own)
    state.own = std::make_unique<own_channel>(*this, state, of_.kind_->channel(of_.name_, of_.field_of(state, mode)));
  if (state.own->dirty) return wake(state);
  if (state.own->listening() == listener::view::refused) state.own->ask_again();
  operation const* const call = waiter_of(state);
  of_.shared_.timers.set(state.own->hint, time_to_look(hint, deaf(state.own->listening()), call ? call->polls : 0));
}

// The server answers a long hint only to those who stand far from the head. They look seldom, not all at once, and many
// leave in one call. Who hears nothing looks as often as those near the head, for the server passes over whom it cannot
// reach and who does not come by himself; all of a name together a thousand times a second.
instant own_channel_waiters::time_to_look(std::int64_t hint, bool deaf, unsigned polls) const {
  instant const now = of_.shared_.now;
  std::int64_t const most = std::min(hint, rules().hint_most);
  milliseconds const near = sleep_time(hint, deaf, polls);
  if (most <= near_hint) return after(now, near);
  if (deaf) {
    auto const many = std::min(static_cast<std::int64_t>(queue_.size()), rules().hint_most);
    return after(now, std::max(near, milliseconds(of_.shared_.random(many * 3 / 4, many))));
  }
  std::int64_t const pause = of_.shared_.random(most * 3 / 4, most);
  instant const at = after(now, milliseconds(pause));
  return instant((at.time_since_epoch() / looks_together + 1) * looks_together);
}

}  // namespace latchkey::detail
