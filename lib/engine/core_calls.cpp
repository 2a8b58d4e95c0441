#include <engine/core.hpp>

namespace latchkey::detail {

void core::start_locked(client_machine& machine, operation& one, bool may_borrow, instant now, actions& out,
                        loan* taken) {
  // The release of a lease: from here on the hold is shown nowhere, and its end is no loss.
  if (one.what == operation::type::release && one.hold != 0) machine.unlink(*one.which, one.name, one.owner, one.hold);
  std::uint32_t const lane = machine.start(one, may_borrow, now, out);
  if (lane != 0) *taken = lanes_.lend(lane, one, machine, now);
}

// Memory for what most calls need. False: the caller is told, and that is all.
bool core::make_room(client_machine& machine, std::span<call* const> all, actions& out) noexcept try {
  for (call* one : all) machine.prepare(*one, out);
  return true;
} catch (std::bad_alloc const&) {
  for (call* one : all) machine.unprepare(*one);
  return false;
}

void core::start(call& one) {
  call* const all[] = {&one};
  start(all);
}

void core::start(std::span<call* const> all) {
  bool room = false;
  steps_.take(
      steps_.prepare(),
      [&](client_machine& machine, instant now, actions& out) {
        room = make_room(machine, all, out);
        for (call* one : all)
          if (room) start_locked(machine, *one, false, now, out, nullptr);
      },
      [] {});
  if (!room) throw std::bad_alloc();
}

void core::run(blocking_call& one, std::stop_token const& stop) {
  uncancelled const whole;
  std::optional<std::stop_callback<std::function<void()>>> watch;
  loan taken;
  bool room = false;
  one.self_timed = true;
  steps_.take(
      steps_.prepare(),
      [&](client_machine& machine, instant now, actions& out) {
        call* const all[] = {&one};
        room = make_room(machine, all, out);
        if (room) start_locked(machine, one, true, now, out, &taken);
      },
      [] {});
  if (!room) throw std::bad_alloc();
  if (stop.stop_possible()) watch.emplace(stop, [this, &one] { cancel(one); });
  if (taken.serial != 0) lanes_.drive(std::move(taken), one, [this](auto const& locked) { steps_.take(locked); });
  wait(one);
}

void core::wait(blocking_call& one) noexcept {
  // Nobody may be running the executor: the machine learns of the deadline from here. It moves the deadline on while
  // a first try is on its way.
  for (instant end = one.deadline; !one.done.wait_until(end);) end = expire(one);
}

instant core::expire(call& one) {
  instant end = never;
  steps_.take([&](client_machine& machine, instant now, actions& out) {
    machine.expire(one, now, out);
    if (one.where != operation::place::idle) end = one.deadline;  // else it is over, and is just being told so
  });
  return end;
}

void core::cancel(call& one) {
  if (forked()) return;
  steps_.take([&](client_machine& machine, instant now, actions& out) { machine.cancel(one, now, out); });
}

void core::drop(kind const& which, std::string_view name, std::uint64_t owner, hold_id hold) {
  steps_.take([&](client_machine& machine, instant now, actions& out) {
    machine.unlink(which, name, owner, hold);
    machine.drop(which, name, owner, hold, now, out);
  });
}

void core::thread_ended() noexcept {
  if (forked()) return;
  tell_attachments(&attachment::thread_ended);
  std::uint64_t const ended = owner_access::number(owner::this_thread());
  steps_.take([&](client_machine& machine, instant now, actions& out) { machine.thread_ended(ended, now, out); });
}

void core::await_lease(int more) {
  steps_.take([&](client_machine& machine, instant now, actions& out) { machine.await_lease(more, now, out); });
}

void core::renew_no_longer(kind const& which, std::string_view name, std::uint64_t owner, hold_id hold) {
  steps_.take([&](client_machine& machine, instant, actions&) { machine.renew_no_longer(which, name, owner, hold); });
}

detached core::detach(kind const& which, std::string_view name, std::uint64_t owner, hold_id hold) {
  detached made;
  steps_.take([&](client_machine& machine, instant now, actions& out) {
    made = machine.detach(which, name, owner, hold, now, out);
  });
  return made;
}

bool core::keeps_out(kind const& which, std::string_view name, std::uint64_t owner, unsigned char mode) {
  return steps_.look([&](client_machine& machine) { return machine.keeps_out(which, name, owner, mode); });
}

}  // namespace latchkey::detail
