#include <support/catch.hpp>
#include <support/unit/stories.hpp>

using namespace latchkey;
using namespace latchkey::test;
using namespace std::chrono_literals;

// What loses a wake-up if it is left out: docs/safety.md section 2. In all these tests no time passes between the moment when
// the lock is free and the grant, unless a test says so.

namespace {

constexpr auto stranger = "stranger:1";

// A waiter that sleeps, subscribed, behind a stranger.
task& sleeper(world& w, std::uint64_t owner, std::int64_t lease = 60'000) {
  w.server.stranger_takes("k", stranger, lease);
  task& one = w.acquire(owner);
  w.run();
  REQUIRE(w.server.subscriptions() == 1);
  REQUIRE_FALSE(one.done());
  return one;
}

// The message link is up and idle, so that a test can hold up what it says from now on.
void open_message_link(world& w) {
  w.server.stranger_takes("warm", stranger, 60'000);
  task& one = w.acquire(99, {.name = "warm"});
  w.run();
  w.cancel(one);
  w.pass(2s);
  REQUIRE(w.connected(role::messages));
  REQUIRE(w.server.subscriptions() == 0);
}

}  // namespace

TEST_CASE("rule: a message that arrives during a try makes it try once more") {
  world w;
  task& a = sleeper(w, 1, 2'000);
  w.mute(role::shared);
  w.pass(1'900ms);
  w.server.store.expire("k", 60'000);   // the stranger renews
  w.pass(200ms);                        // the hint is over: a try, busy, its answer is on its way
  w.server.stranger_releases("k", stranger);
  w.run();
  CHECK_FALSE(a.done());
  w.mute(role::shared, false);
  w.run();
  CHECK(a.granted());
  w.finish();
}

TEST_CASE("rule: a confirmation that arrives during a try makes it try once more") {
  world w;
  open_message_link(w);
  w.deafen(role::messages);
  w.server.stranger_takes("k", stranger, 2'000);
  task& a = w.acquire(1);
  w.run();
  w.mute(role::shared);
  w.pass(1'900ms);
  w.server.store.expire("k", 60'000);
  w.pass(200ms);                              // a try that is answered busy
  w.server.stranger_releases("k", stranger);  // nobody hears it
  w.deafen(role::messages, false);
  w.run();                                    // the confirmation
  CHECK_FALSE(a.done());
  w.mute(role::shared, false);
  w.run();
  CHECK(a.granted());
  w.finish();
}

TEST_CASE("rule: who becomes head because the other left tries at once") {
  world w;
  task& a = sleeper(w, 1);
  task& b = w.acquire(2);
  w.run();
  w.mute(role::shared);
  w.server.stranger_releases("k", stranger);   // the message makes a try
  w.until([&] { return w.server.store.has("k", w.field(1)); });
  w.cancel(a);
  w.run();
  w.mute(role::shared, false);
  w.run();
  CHECK(b.granted());
  w.finish();
}

TEST_CASE("rule: who becomes head while the lock is held asks how long") {
  world w;
  task& a = sleeper(w, 1);
  w.acquire(2);
  w.run();
  std::size_t const before = w.server.ran("EVALSHA acquire");
  w.cancel(a);
  w.run();
  CHECK(w.server.ran("EVALSHA acquire") == before + 1);
  w.server.stranger_releases("k", stranger);
  w.finish();
}

TEST_CASE("rule: behind a holder of this client the head sleeps with the hint timer") {
  config settings;
  settings.timeout = 60s;
  world w(settings);
  open_message_link(w);
  task& a = granted(w, w.acquire(1, {.lease = 5s}));
  w.deafen(role::messages);
  task& b = w.acquire(2);
  w.run();
  std::size_t const before = w.server.ran("EVALSHA");
  w.pass(4s);
  CHECK(w.server.ran("EVALSHA") == before);
  w.pass(1'100ms);   // no message comes when a lease ends, and no confirmation here
  CHECK(a.losses == 1);
  CHECK(b.granted());
  w.deafen(role::messages, false);
  w.drop(a);
  w.finish();
}

TEST_CASE("rule: behind the hand-off to another one it sleeps with the hint timer too") {
  world w;
  task& a = granted(w, w.acquire(1));
  task& b = w.acquire(2, {.lease = 5s});
  task& c = w.acquire(3);
  w.run();
  w.release(a);
  w.run();
  REQUIRE(b.granted());
  std::size_t const before = w.server.ran("EVALSHA");
  w.pass(4s);
  CHECK(w.server.ran("EVALSHA") == before);
  w.pass(1'100ms);
  CHECK(c.granted());
  w.drop(b);
  w.finish();
}

TEST_CASE("rule: it tries again after the confirmation") {
  world w;
  open_message_link(w);
  w.deafen(role::messages);
  w.server.stranger_takes("k", stranger, 60'000);
  task& a = w.acquire(1);
  w.run();
  w.server.stranger_releases("k", stranger);   // before the server listens for us
  w.deafen(role::messages, false);
  w.run();
  CHECK(a.granted());
  w.finish();
}

TEST_CASE("rule: it tries after joining a subscription that lingers") {
  world w;
  task& a = sleeper(w, 1);
  w.cancel(a);
  w.run();
  w.server.stranger_releases("k", stranger);
  w.server.stranger_takes("k", "stranger:2", 60'000);
  w.run();
  w.pass(100ms);
  REQUIRE(w.server.subscriptions() == 1);
  w.mute(role::messages);   // the message is still on its way
  w.server.stranger_releases("k", "stranger:2");
  task& b = w.acquire(2);
  w.run();
  CHECK(b.granted());
  w.mute(role::messages, false);
  w.finish();
}

TEST_CASE("rule: a message that nobody waited for is not forgotten by who joins next") {
  world w;
  task& a = granted(w, w.acquire(1));
  task& b = w.acquire(2);
  w.run();
  w.cancel(b);                       // the subscription lingers
  w.run();
  w.server.stranger_forces("k");     // and hears that the lock is free, though a believes to hold it
  a.removed = true;
  w.run();
  task& c = w.acquire(3);
  w.run();
  CHECK(c.granted());
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
  CHECK(w.now - a.started < 5s);   // the pause before the next connection, and not the hint of a minute
  w.finish();
}

TEST_CASE("rule: an unsubscribing channel counts as not subscribed") {
  world w;
  task& a = sleeper(w, 1);
  w.cancel(a);
  w.run();
  w.deafen(role::messages);
  w.pass(1'001ms);                 // UNSUBSCRIBE leaves, and is not read yet
  REQUIRE(w.server.subscriptions() == 1);
  task& b = w.acquire(2);
  w.run();                         // busy; SUBSCRIBE leaves
  w.deafen(role::messages, false);
  w.until([&] { return w.server.subscriptions() == 0; });
  w.server.stranger_releases("k", stranger);   // between the two
  w.run();
  CHECK(w.server.ran("SUBSCRIBE") == 2);
  CHECK(b.granted());
  w.finish();
}

TEST_CASE("rule: a give-back publishes") {
  world w({}, 2);
  task& other = granted(w, w.acquire(9, {.name = "other"}));
  w.mute(role::shared);
  task& a = w.acquire(1);
  w.run();
  REQUIRE(w.server.store.has("k", w.field(1)));
  task& b = w.acquire(1, {.client = 1});
  w.run();
  CHECK_FALSE(b.done());
  w.cancel(a);
  w.mute(role::shared, false);
  w.run();
  CHECK(b.granted());
  w.drop(other);
  w.finish();
}

TEST_CASE("rule: an abandoned grant is given back") {
  for (bool const direct : {false, true}) {
    world w;
    w.drop(granted(w, w.acquire(9, {.name = "other", .direct = true})));
    w.run();
    w.mute(direct ? role::direct : role::shared);
    task& a = w.acquire(1, {.direct = direct});
    w.run();
    REQUIRE(w.server.store.has("k", w.field(1)));
    w.cancel(a);
    w.mute(direct ? role::direct : role::shared, false);
    w.run();
    CHECK(a.completions == 1);
    CHECK(w.server.store.all().empty());
    CHECK(w.snapshot().given_back == 1);
    w.finish();
  }
}

TEST_CASE("rule: a new caller joins behind waiters and never tries past them") {
  world w;
  task& a = sleeper(w, 1);
  std::size_t const before = w.server.ran("EVALSHA");
  task& b = w.acquire(2);
  task& c = w.acquire(3, {.direct = true});
  w.run();
  CHECK(w.server.ran("EVALSHA") == before);
  w.server.stranger_releases("k", stranger);
  w.run();
  CHECK(a.granted());
  CHECK_FALSE(b.done());
  CHECK_FALSE(c.done());
  w.release(a);
  w.run();
  CHECK(b.granted());
  CHECK_FALSE(c.done());
  w.finish();
}

TEST_CASE("rule: a message during a try that was granted passes to the next head") {
  world w;
  task& a = sleeper(w, 1);
  task& b = w.acquire(2);
  w.run();
  w.mute(role::shared);
  w.server.stranger_releases("k", stranger);
  w.until([&] { return w.server.store.has("k", w.field(1)); });
  a.removed = true;
  w.watch_holds = false;
  w.server.stranger_forces("k");   // a's grant is under way, and gone already
  w.run();
  w.mute(role::shared, false);
  w.run();
  CHECK(a.granted());
  CHECK(b.granted());
  CHECK(a.losses == 1);
  w.drop(a);
  w.finish();
}

TEST_CASE("rule: the hint timer runs subscribed or not") {
  world w;
  open_message_link(w);
  w.deafen(role::messages);
  w.server.stranger_takes("k", stranger, 2'000);
  task& a = w.acquire(1);
  w.pass(1'900ms);
  CHECK_FALSE(a.done());
  w.pass(102ms);
  CHECK(a.granted());
  w.deafen(role::messages, false);
  w.finish();
}

TEST_CASE("rule: who becomes head while another one's try is under way has a timer, too") {
  world w;
  open_message_link(w);
  w.deafen(role::messages);   // no confirmation comes
  w.server.stranger_takes("k", stranger, 2'000);
  task& a = w.acquire(1);
  task& b = w.acquire(2);
  w.run();
  w.mute(role::shared);
  w.pass(1'900ms);
  w.server.store.expire("k", 2'000);   // the stranger renews
  w.pass(200ms);                       // a tries
  w.cancel(a);
  w.mute(role::shared, false);
  w.run();
  w.pass(1'900ms);
  CHECK(b.granted());
  w.deafen(role::messages, false);
  w.finish();
}

TEST_CASE("rule: a confirmation counts only if no UNSUBSCRIBE was sent behind its SUBSCRIBE") {
  world w;
  open_message_link(w);
  w.mute(role::messages);                  // confirmations are late
  w.server.stranger_takes("k", stranger, 60'000);
  task& a = w.acquire(1);
  w.run();
  w.cancel(a);
  w.pass(1'001ms);                         // UNSUBSCRIBE has left, and was read
  w.deafen(role::messages);
  task& b = w.acquire(2);
  w.run();                                 // the second SUBSCRIBE is not read yet
  w.mute(role::messages, false);
  w.run();                                 // the first confirmation
  w.server.stranger_releases("k", stranger);
  w.deafen(role::messages, false);
  w.run();
  CHECK(b.granted());
  w.finish();
}
