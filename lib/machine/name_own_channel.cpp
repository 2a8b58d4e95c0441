#include <machine/name_machine.hpp>
#include <machine/outbox.hpp>
#include <machine/own_channel.hpp>

#include <algorithm>

namespace latchkey::detail {

namespace {

constexpr std::int64_t near_hint = 1'000;  // milliseconds
constexpr milliseconds looks_together{50};

}  // namespace

// Kinds whose waiters stand in a queue on the server: each enters it when it comes, listens on a channel of its own,
// tries for itself, and leaves that queue when it gives up.

own_channel::own_channel(context& shared, owner_state& of, std::string channel)
    : shared_(shared), of_(of), channel_(std::move(channel)) {
  hint.what = timer_node::type::own_hint;
  hint.of = &of;
  shared_.channels->want(channel_, *this);
}

own_channel::~own_channel() {
  shared_.timers.drop(hint);
  shared_.channels->drop(channel_, *this);
}

void own_channel::on_confirmed() { of_.of.wake_alone(of_); }

void own_channel::on_message(std::string_view payload) {
  ++shared_.counters.messages;
  if (of_.of.which().wakes(payload)) of_.of.wake_alone(of_);
}

void own_channel::on_refused() { of_.of.wake_alone(of_); }

operation* name_machine::waiter_of(owner_state& one) {
  bool const waits = one.waits && !one.ask_.under_way() && one.waits->where == operation::place::waiting;
  return waits ? one.waits : nullptr;
}

// What woke this one could not be followed now: the next answer makes it look again.
void name_machine::park(owner_state& one) {
  if (one.queued == 0 || std::exchange(one.parked, true)) return;
  parked_.push_back(one.owner);
}

void name_machine::wake_alone(owner_state& one) {
  operation* const call = waiter_of(one);
  if (!call || active_.in_doubt(kind_.rules(), call->mode)) {
    if (one.own) one.own->dirty = true;
    return park(one);
  }
  if (one.own) {
    one.own->dirty = false;
    shared_.timers.drop(one.own->hint);
  }
  send_acquire(one, *call, queue_.size() == 1 && !active_.release_sent() && !active_.unsent_release(one));
}

void name_machine::on_own_hint(owner_state& one) {
  if (operation* const call = waiter_of(one)) ++call->polls;
  wake_alone(one);
}

// The answer that resolves the name makes those try who waited for it.
void name_machine::wake_all_alone() {
  if (parked_.empty() || active_.in_doubt(kind_.rules(), 0)) return;  // such a kind has one side
  for (std::uint64_t const owner : std::exchange(parked_, {})) {
    owner_state* const one = known(owner);
    if (!one) continue;
    one->parked = false;
    operation const* const call = waiter_of(*one);
    if (call && (!call->tried || (one->own && one->own->dirty))) wake_alone(*one);
  }
}

void name_machine::wait_alone(owner_state& one, unsigned char mode, std::int64_t hint) {
  if (!one.own) one.own = std::make_unique<own_channel>(shared_, one, kind_.channel(name_, field_of(one, mode)));
  if (one.own->dirty) return wake_alone(one);
  operation const* const call = waiter_of(one);
  // Until its channel is confirmed it hears nothing either, and the server may take it for dead.
  bool const deaf = one.own->listening() != listener::view::on;
  shared_.timers.set(one.own->hint, time_to_look(hint, deaf, call ? call->polls : 0));
}

// The server answers a long hint only to those who stand far from the head. They look seldom, not all at once, and many
// leave in one call. Who hears nothing looks as often as those near the head, for the server passes over whom it cannot
// reach and who does not come by himself; all of a name together a thousand times a second.
instant name_machine::time_to_look(std::int64_t hint, bool deaf, unsigned polls) {
  std::int64_t const most = std::min(hint, kind_.rules().hint_most);
  milliseconds const near = sleep_time(hint, deaf, polls);
  if (most <= near_hint) return after(shared_.now, near);
  if (deaf) {
    auto const many = std::min(static_cast<std::int64_t>(queue_.size()), kind_.rules().hint_most);
    return after(shared_.now, std::max(near, milliseconds(shared_.random(many * 3 / 4, many))));
  }
  std::int64_t const pause = shared_.random(most * 3 / 4, most);
  instant const at = after(shared_.now, milliseconds(pause));
  return instant((at.time_since_epoch() / looks_together + 1) * looks_together);
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

void name_machine::on_leave_answer(owner_state& one) {
  request const was = one.ask_;
  finish(one);
  one.in_line = false;
  repair_sides(one, was.fix | (was.owes ? 1u << was.mode : 0u));
}

}  // namespace latchkey::detail
