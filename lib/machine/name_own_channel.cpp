#include <machine/name_machine.hpp>
#include <machine/outbox.hpp>
#include <machine/own_channel.hpp>

#include <algorithm>

namespace latchkey::detail {

// Kinds whose waiters stand in a queue on the server: each enters it when it comes, listens on a channel of its own,
// tries for itself, and leaves that queue when it gives up.

own_channel::own_channel(context& shared, record& of, std::string channel)
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
  if (of_.of.which().on_message(payload) != kind::wake::nobody) of_.of.wake_alone(of_);
}

void own_channel::on_refused() { of_.of.wake_alone(of_); }

operation* name_machine::waiter_of(record& one) {
  auto const found = std::find_if(queue_.begin(), queue_.end(), [&](operation const& call) {
    return call.owner_record == &one && call.where == operation::place::waiting;
  });
  return found == queue_.end() || one.ask_.under_way() ? nullptr : &*found;
}

void name_machine::wake_alone(record& one) {
  operation* const call = waiter_of(one);
  if (!call || unsettled(call->mode)) {
    if (one.own) one.own->dirty = true;
    return;
  }
  if (one.own) {
    one.own->dirty = false;
    shared_.timers.drop(one.own->hint);
  }
  send_acquire(one, *call, queue_.size() == 1 && !release_under_way());
}

void name_machine::on_own_hint(record& one) {
  if (operation* const call = waiter_of(one)) ++call->polls;
  wake_alone(one);
}

// The answer that settles the name makes those try who waited for it.
void name_machine::wake_all_alone() {
  for (auto& call : queue_) {
    record& one = *call.owner_record;
    bool const may = &call == waiter_of(one) && (!call.tried || (one.own && one.own->dirty));
    if (may && !unsettled(call.mode)) wake_alone(one);
  }
}

void name_machine::wait_alone(record& one, unsigned char mode, std::int64_t hint) {
  if (!one.own) one.own = std::make_unique<own_channel>(shared_, one, kind_.channel(name_, field_of(one, mode)));
  if (one.own->dirty) return wake_alone(one);
  operation const* const call = waiter_of(one);
  // Until its channel is confirmed it hears nothing either, and the server may take it for dead.
  bool const deaf = one.own->listening() != listener::view::on;
  shared_.timers.set(one.own->hint, after(shared_.now, sleep_time(hint, deaf, call ? call->polls : 0)));
}

// Nobody of this owner waits any more, and the server may still have it in its queue.
void name_machine::leave_line(record& one) {
  if (!one.in_line || one.ask_.under_way() || one.queued > 0 || !one.behind.empty()) return;
  request asked;
  asked.what = ask::leave;
  asked.give_back = true;
  begin(one, asked);
  send(one, false);
}

void name_machine::on_leave_answer(record& one) {
  request const was = one.ask_;
  finish(one);
  one.in_line = false;
  repair_sides(one, was.fix | (was.owes ? 1u << was.mode : 0u));
}

}  // namespace latchkey::detail
