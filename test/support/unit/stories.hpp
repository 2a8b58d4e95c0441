#pragma once

#include <support/unit/world.hpp>

namespace latchkey::test {

// What `ask` sends stands unread in a connection that is then lost: a late copy.
template <class Ask>
void leave_unread(world& w, role as, Ask const& ask) {
  w.late_bytes = false;
  w.deafen(as);
  ask();
  w.run();
  w.lose(as, fate::late);
}

// What `ask` sends is executed, and the connection is lost before the answer arrives.
template <class Ask>
void leave_unanswered(world& w, role as, Ask const& ask) {
  w.mute(as);
  ask();
  w.run();
  w.lose(as, fate::gone);
}

inline task& granted(world& w, task& one) {
  w.await(one);
  if (!one.granted()) w.fail(one.label + " was not granted");
  return one;
}

inline constexpr auto stranger = "stranger:1";

// A waiter that sleeps, subscribed, behind a stranger.
inline task& sleeper(world& w, std::uint64_t owner, std::int64_t lease = 60'000) {
  w.server.stranger_takes("k", stranger, lease);
  task& one = w.acquire(owner);
  w.run();
  if (w.server.subscriptions() != 1 || one.done()) w.fail("it should sleep, and listen");
  return one;
}

// The message link is up and idle, so that a test can hold up what it says from now on.
inline void open_message_link(world& w) {
  w.server.stranger_takes("warm", stranger, 60'000);
  task& one = w.acquire(99, {.name = "warm"});
  w.run();
  w.cancel(one);
  w.pass(milliseconds(2'000));
  if (!w.connected(role::messages) || w.server.subscriptions() != 0) w.fail("the message link should be idle");
}

}  // namespace latchkey::test
