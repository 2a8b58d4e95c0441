#include <support/catch.hpp>
#include <support/unit/stories.hpp>

using namespace latchkey;
using namespace latchkey::test;
using namespace std::chrono_literals;

// What is heard when nobody can act on it, and what is not heard at all. In all these tests no time passes between the
// moment when the lock is free and the grant, unless a test says so.

TEST_CASE("rule: it tries after joining a subscription that lingers") {
  world w;
  task& a = sleeper(w, 1);
  w.cancel(a).run();
  w.server.stranger_releases("k", stranger);
  w.server.stranger_takes("k", "stranger:2", 60'000);
  w.run();
  w.pass(100ms);
  REQUIRE(w.server.subscriptions() == 1);
  w.mute(role::messages);  // the message is still on its way
  w.server.stranger_releases("k", "stranger:2");
  CHECK(w.run(w.acquire(2)).granted());
  w.mute(role::messages, false);
  w.finish();
}

TEST_CASE("rule: a message that nobody waited for is not forgotten by who joins next") {
  world w;
  task& a = granted(w, w.acquire(1));
  task& b = w.run(w.acquire(2));
  w.cancel(b).run();              // the subscription lingers
  w.server.stranger_forces("k");  // and hears that the lock is free, though a believes to hold it
  a.removed = true;
  w.run();
  CHECK(w.run(w.acquire(3)).granted());
  CHECK(a.losses == 1);
  w.drop(a);
  w.finish();
}

TEST_CASE("rule: it tries again after subscribing anew") {
  world w;
  task& a = sleeper(w, 1);
  w.unreachable = "no route";
  w.lose(role::messages, fate::gone);
  w.server.stranger_releases("k", stranger);
  w.run();
  CHECK_FALSE(a.done());
  w.unreachable.clear();
  w.until([&] { return a.done(); });
  CHECK(a.granted());
  CHECK(w.now - a.started < 5s);  // the pause before the next connection, and not the hint of a minute
  w.finish();
}

TEST_CASE("rule: an unsubscribing channel counts as not subscribed") {
  world w;
  task& a = sleeper(w, 1);
  w.cancel(a).run();
  w.deafen(role::messages);
  w.pass(1'001ms);  // UNSUBSCRIBE leaves, and is not read yet
  REQUIRE(w.server.subscriptions() == 1);
  task& b = w.run(w.acquire(2));  // busy; SUBSCRIBE leaves
  w.deafen(role::messages, false);
  w.until([&] { return w.server.subscriptions() == 0; });
  w.server.stranger_releases("k", stranger);  // between the two
  w.run();
  CHECK(w.server.ran("SUBSCRIBE") == 2);
  CHECK(b.granted());
  w.finish();
}

TEST_CASE("rule: a message during a try that was granted passes to the next head") {
  world w;
  task& a = sleeper(w, 1);
  task& b = w.run(w.acquire(2));
  w.mute(role::shared);
  w.server.stranger_releases("k", stranger);
  w.until([&] { return w.server.has("k", w.field(1)); });
  a.removed = true;
  w.watch_holds = false;
  w.server.stranger_forces("k");  // a's grant is under way, and gone already
  w.run();
  w.mute(role::shared, false).run();
  CHECK(a.granted());
  CHECK(b.granted());
  CHECK(a.losses == 1);
  w.drop(a);
  w.finish();
}

TEST_CASE("rule: a confirmation counts only if no UNSUBSCRIBE was sent behind its SUBSCRIBE") {
  world w;
  open_message_link(w);
  w.mute(role::messages);  // confirmations are late
  w.server.stranger_takes("k", stranger, 60'000);
  task& a = w.run(w.acquire(1));
  w.cancel(a);
  w.pass(1'001ms);  // UNSUBSCRIBE has left, and was read
  w.deafen(role::messages);
  task& b = w.run(w.acquire(2));        // the second SUBSCRIBE is not read yet
  w.mute(role::messages, false).run();  // the first confirmation
  w.server.stranger_releases("k", stranger);
  w.deafen(role::messages, false).run();
  CHECK(b.granted());
  w.finish();
}

TEST_CASE("rule: a confirmation that nobody waits for is not forgotten by who joins next") {
  world w;
  open_message_link(w);
  task& a = granted(w, w.acquire(1));
  w.deafen(role::messages);
  task& b = w.run(w.acquire(2));
  w.server.stranger_forces("k");  // before the server listens for us
  a.removed = true;
  w.cancel(b);
  w.deafen(role::messages, false).run();  // the confirmation
  CHECK(w.run(w.acquire(3)).granted());
  w.drop(a);
  w.finish();
}

TEST_CASE("rule: a message whose try was never sent is not forgotten by who joins next") {
  world w;
  task& a = granted(w, w.acquire(1));
  task& b = w.run(w.acquire(2));
  w.server.stranger_forces("k");
  a.removed = true;
  w.until([&] { return b.where == task::place::trying; });
  w.cancel(b);  // before the turn ends
  CHECK(w.run(w.acquire(3)).granted());
  w.drop(a);
  w.finish();
}

TEST_CASE("rule: a channel that the server will not take back goes with its connection") {
  auto const refusal = GENERATE(as<std::string>{}, "BUSY Redis is busy running a script.",
                                "NOPERM this user has no permissions to run the 'unsubscribe' command");
  INFO(refusal);
  world w;
  task& a = sleeper(w, 1);
  w.cancel(a);
  w.server.refuse("UNSUBSCRIBE", refusal);
  w.pass(1'500ms);
  CHECK(w.server.ran("UNSUBSCRIBE") == 1);
  CHECK(w.server.subscriptions() == 0);
  w.server.stranger_releases("k", stranger);
  w.finish();
}

TEST_CASE("rule: a channel that a busy server would not give is asked for again") {
  world w;
  w.server.refuse("SUBSCRIBE", "BUSY Redis is busy running a script.");
  task& a = sleeper(w, 1);
  CHECK_FALSE(w.snapshot().messages_refused);
  w.server.stranger_releases("k", stranger);
  w.run();
  CHECK(a.granted());
  w.finish();
}

TEST_CASE("rule: an UNSUBSCRIBE that a busy server refuses is not taken for the PING behind it") {
  world w;
  task& a = sleeper(w, 1);
  w.pass(28'500ms);
  w.cancel(a);
  w.mute(role::messages);
  w.server.refuse("UNSUBSCRIBE", "BUSY Redis is busy running a script.", 1);
  w.pass(1'600ms);  // it leaves after one second, and the PING half a second later
  REQUIRE(w.server.subscriptions() == 1);
  w.mute(role::messages, false);
  w.until([&] { return w.server.subscriptions() == 0; });
  w.server.stranger_releases("k", stranger);
  w.finish();
}

TEST_CASE("rule: who waits for a channel that nobody confirms looks soon after a release of his own client") {
  world w({.local_handoff = {.max_streak = 0}});
  task& a = granted(w, w.acquire(1));
  w.nobody_answers = true;  // new connections: there is none for messages
  task& b = w.run(w.acquire(2));
  w.pass(20ms);
  SECTION("that he made") { w.release(a); }
  SECTION("that a force-unlock of his made needless") { w.force_unlock(); }
  w.run();
  w.pass(100ms);
  CHECK(b.granted());
  w.nobody_answers = false;
  w.finish();
}

TEST_CASE("rule: who waits for a channel that nobody confirms looks soon when a release finds nothing") {
  world w({.local_handoff = {.max_streak = 0}});
  w.watch_holds = false;
  task& a = granted(w, w.acquire(1));
  w.nobody_answers = true;
  task& b = w.run(w.acquire(2));
  w.pass(20ms);
  w.server.stranger_forces("k");
  w.run(w.release(a));
  w.pass(100ms);
  CHECK(b.granted());
  w.nobody_answers = false;
  w.finish();
}

TEST_CASE(
    "rule: a release of his own client that overtakes the answer to his try is not forgotten by who hears nothing") {
  world w;
  task& a = granted(w, w.acquire(1));
  task& other = granted(w, w.acquire(5, {.name = "lane", .direct = true}));
  w.run(w.release(other, true));
  w.pass(20ms);
  w.nobody_answers = true;
  task& left = w.run(w.acquire(7));
  w.cancel(left);
  w.mute(role::shared);
  task& b = w.acquire(2);  // the channel is asked for already: it tries
  w.run();
  w.run(w.release(a, true));
  w.mute(role::shared, false).run();
  w.pass(100ms);
  CHECK(b.granted());
  w.nobody_answers = false;
  w.finish();
}
