#pragma once

#include <support/unit/world.hpp>
#include <wire/kinds.hpp>

#include <cstddef>
#include <type_traits>
#include <vector>

namespace latchkey::test {

// Answers what `ask` does, if anything.
template <class Ask>
auto lose_behind(world& w, role as, fate of, Ask const& ask) {
  if constexpr (std::is_void_v<std::invoke_result_t<Ask const&>>) {
    ask();
    w.run();
    w.lose(as, of);
  } else {
    auto const made = ask();
    w.run();
    w.lose(as, of);
    return made;
  }
}

// What `ask` sends stands unread in a connection that is then lost: a late copy.
template <class Ask>
auto leave_unread(world& w, role as, Ask const& ask) {
  w.late_bytes = false;
  w.deafen(as);
  return lose_behind(w, as, fate::late, ask);
}

// What `ask` sends is executed, and the connection is lost before the answer arrives.
template <class Ask>
auto leave_unanswered(world& w, role as, Ask const& ask) {
  w.mute(as);
  return lose_behind(w, as, fate::gone, ask);
}

inline task& granted(world& w, task& one) {
  w.await(one);
  if (!one.granted()) w.fail(one.label + " was not granted");
  return one;
}

// Another lock was taken and given back: the connections are made, with `direct` also the lane.
inline void warm_up(world& w, bool direct = false) {
  w.drop(granted(w, w.acquire(99, {.name = "warm", .direct = direct}))).run();
}

// A hold that the server keeps two seconds longer than its owner believes.
inline task& hold_kept_longer(world& w, std::uint64_t owner, milliseconds lease) {
  warm_up(w);
  w.deafen(role::shared);
  task& one = w.acquire(owner, {.lease = lease});
  w.pass(milliseconds(2'000));
  w.deafen(role::shared, false);
  return granted(w, one);
}

// Callers pass a lock on and re-enter it without the server.
inline config with_turns(config made = {}) {
  made.local_turns = true;
  made.local_handoff = {.max_streak = 10'000, .max_time = milliseconds(3), .warm_up = 0};
  return made;
}

// A client that waits for answers for long, and tries for ever.
inline config patient() {
  config made = seen_by_the_server();
  made.timeout = milliseconds(60'000);
  made.retry_delay = milliseconds(100);
  made.retry_attempts = 1'000;
  return made;
}

inline config streak_of(int length, milliseconds time = milliseconds(60'000)) {
  config made = seen_by_the_server();
  made.local_handoff = {.max_streak = length, .max_time = time};
  return made;
}

// --- what is counted ---

inline how a_permit(milliseconds lease = milliseconds(0)) {
  return {.lease = lease, .which = &detail::permit_semaphore_kind()};
}

// So many permits are free.
inline void set_free(world& w, std::int64_t n) {
  w.exclusive = false;
  w.server.set("k", n);
}

inline void expect_free(world& w, std::int64_t n) {
  if (auto const free = w.server.number("k"); free != n)
    w.fail(std::to_string(free) + " are free instead of " + std::to_string(n));
}

// --- queues on the server ---

// Waiters of two clients, one of whom gives up. `queue`: the list of those who wait.
inline void one_gives_up(world& w, detail::kind const& which, std::string const& queue) {
  task& a = w.await(w.acquire(1, {.which = &which}));
  task& b = w.run(w.acquire(2, {.client = 1, .which = &which}));
  task& c = w.acquire(3, {.which = &which});
  task& d = w.run(w.acquire(4, {.wait = milliseconds(3'000), .which = &which}));
  if (a.granted()) w.release(a);
  w.await(b);
  w.expect(b.granted(), "the first in the queue");
  w.await(d);
  if (b.granted()) w.release(b);
  w.await(c);
  w.expect(c.granted() && d.busy(), "the second; the third did not wait for long");
  if (c.granted()) w.drop(c);
  w.resolve();
  if (!w.server.list(queue).empty()) w.fail("left in the queue of the server: " + w.server.list(queue).front());
}

// --- strangers ---

inline constexpr auto stranger = "stranger:1";

// A waiter that sleeps, subscribed, behind a stranger.
inline task& sleeper(world& w, std::uint64_t owner, std::int64_t lease = 60'000) {
  w.server.stranger_takes("k", stranger, lease);
  task& one = w.run(w.acquire(owner));
  if (w.server.subscriptions() != 1 || one.done()) w.fail("it should sleep, and listen");
  return one;
}

// The message link is up and idle, so that a test can hold up what it says from now on.
inline void open_message_link(world& w) {
  w.server.stranger_takes("warm", stranger, 60'000);
  task& one = w.run(w.acquire(99, {.name = "warm"}));
  w.cancel(one);
  w.pass(milliseconds(2'000));
  if (!w.connected(role::messages) || w.server.subscriptions() != 0) w.fail("the message link should be idle");
}

// The first owner has had it, and the second one has it by a turn, in the field of the first.
inline task& second_by_turn(world& w) {
  task& first = granted(w, w.acquire(1));
  task& second = w.run(w.acquire(2));
  w.drop(first);
  if (!second.granted()) w.fail(second.label + " has no turn");
  return second;
}

inline std::vector<how> kinds_with_turns() {
  std::vector<how> made;
  for (auto const* which :
       {&detail::reentrant_kind(), &detail::non_reentrant_kind(), &detail::spin_kind(), &detail::plain_kind()})
    made.push_back({.which = which});
  return made;
}

inline std::size_t asked(world const& w) { return w.server.ran("EVALSHA") + w.server.ran("EVAL "); }

}  // namespace latchkey::test
