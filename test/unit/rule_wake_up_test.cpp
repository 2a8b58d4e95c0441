#include <support/catch.hpp>
#include <support/unit/stories.hpp>

using namespace latchkey;
using namespace latchkey::test;
using namespace std::chrono_literals;

// What loses a wake-up if it is left out: docs/safety.md section 2. In all these tests no time passes between the
// moment when the lock is free and the grant, unless a test says so.

TEST_CASE("rule: a message that arrives during a try makes it try once more") {
  world w;
  task& a = sleeper(w, 1, 2'000);
  w.mute(role::shared);
  w.pass(1'900ms);
  w.server.expire("k", 60'000);  // the stranger renews
  w.pass(200ms);                 // the hint is over: a try, busy, its answer is on its way
  w.server.stranger_releases("k", stranger);
  w.run();
  CHECK_FALSE(a.done());
  w.mute(role::shared, false).run();
  CHECK(a.granted());
  w.finish();
}

TEST_CASE("rule: a confirmation that arrives during a try makes it try once more") {
  world w;
  open_message_link(w);
  w.deafen(role::messages);
  w.server.stranger_takes("k", stranger, 2'000);
  task& a = w.run(w.acquire(1));
  w.mute(role::shared);
  w.pass(1'900ms);
  w.server.expire("k", 60'000);
  w.pass(200ms);                              // a try that is answered busy
  w.server.stranger_releases("k", stranger);  // nobody hears it
  w.deafen(role::messages, false).run();      // the confirmation
  CHECK_FALSE(a.done());
  w.mute(role::shared, false).run();
  CHECK(a.granted());
  w.finish();
}

TEST_CASE("rule: who becomes head because the other left tries at once") {
  world w;
  task& a = sleeper(w, 1);
  task& b = w.run(w.acquire(2));
  w.mute(role::shared);
  w.server.stranger_releases("k", stranger);  // the message makes a try
  w.until([&] { return w.server.has("k", w.field(1)); });
  w.cancel(a).run();
  w.mute(role::shared, false).run();
  CHECK(b.granted());
  w.finish();
}

TEST_CASE("rule: who becomes head behind one that slept knows how long") {
  world w;
  task& a = sleeper(w, 1);
  task& b = w.run(w.acquire(2));
  std::size_t const before = w.server.ran("EVALSHA acquire");
  w.cancel(a).run();
  CHECK(w.server.ran("EVALSHA acquire") == before);
  w.server.stranger_releases("k", stranger);
  w.run();
  CHECK(b.granted());
  w.finish();
}

TEST_CASE("whoever is next behind one that gave up is woken as that one would have been") {
  bool const by_hint = GENERATE(true, false);
  world w(seen_by_the_server());
  w.server.stranger_takes("k", stranger, by_hint ? 500 : 20'000);
  w.run(w.acquire(1, {.wait = 100ms}));
  task& next = w.run(w.acquire(2));
  w.pass(200ms);
  CHECK_FALSE(next.done());
  if (by_hint)
    w.pass(302ms);
  else
    w.server.stranger_releases("k", stranger);
  w.run();
  CHECK(next.granted());
  w.finish();
}

TEST_CASE("rule: behind a holder of this client the head sleeps with the hint timer") {
  config settings = seen_by_the_server();
  settings.timeout = 60s;
  settings.local_handoff.max_streak = 0;  // or the give-back of the lost hold would hand the lock on
  world w(settings);
  open_message_link(w);
  task& a = granted(w, w.acquire(1, {.lease = 5s}));
  w.deafen(role::messages);
  task& b = w.run(w.acquire(2));
  std::size_t const before = w.server.ran("EVALSHA");
  w.pass(4s);
  CHECK(w.server.ran("EVALSHA") == before);
  w.pass(1'100ms);  // no message comes when a lease ends, and no confirmation here
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
  task& c = w.run(w.acquire(3));
  w.run(w.release(a));
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
  task& a = w.run(w.acquire(1));
  w.server.stranger_releases("k", stranger);  // before the server listens for us
  w.deafen(role::messages, false).run();
  CHECK(a.granted());
  w.finish();
}

TEST_CASE("rule: a give-back publishes") {
  world w(seen_by_the_server(), 2);
  task& other = granted(w, w.acquire(9, {.name = "other"}));
  w.mute(role::shared);
  task& a = w.run(w.acquire(1));
  REQUIRE(w.server.has("k", w.field(1)));
  task& b = w.run(w.acquire(1, {.client = 1}));
  CHECK_FALSE(b.done());
  w.cancel(a);
  w.mute(role::shared, false).run();
  CHECK(b.granted());
  w.drop(other);
  w.finish();
}

TEST_CASE("rule: an abandoned grant is given back") {
  for (bool const direct : {false, true}) {
    world w;
    warm_up(w, true);
    w.mute(direct ? role::direct : role::shared);
    task& a = w.run(w.acquire(1, {.direct = direct}));
    REQUIRE(w.server.has("k", w.field(1)));
    w.cancel(a);
    w.mute(direct ? role::direct : role::shared, false).run();
    CHECK(a.completions == 1);
    CHECK(w.server.all().empty());
    CHECK(w.snapshot().given_back == 1);
    w.finish();
  }
}

TEST_CASE("rule: a new caller joins behind waiters and never tries past them") {
  world w;
  task& a = sleeper(w, 1);
  std::size_t const before = w.server.ran("EVALSHA");
  task& b = w.acquire(2);
  task& c = w.run(w.acquire(3, {.direct = true}));
  CHECK(w.server.ran("EVALSHA") == before);
  w.server.stranger_releases("k", stranger);
  w.run();
  CHECK(a.granted());
  CHECK_FALSE(b.done());
  CHECK_FALSE(c.done());
  w.run(w.release(a));
  CHECK(b.granted());
  CHECK_FALSE(c.done());
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
  world w({.timeout = 60s});
  open_message_link(w);
  w.deafen(role::messages);  // no confirmation comes
  w.server.stranger_takes("k", stranger, 2'000);
  task& a = w.acquire(1);
  task& b = w.run(w.acquire(2));
  w.mute(role::shared);
  w.pass(1'900ms);
  w.server.expire("k", 2'000);  // the stranger renews
  w.pass(200ms);                // a tries
  w.cancel(a);
  w.mute(role::shared, false).run();
  w.pass(1'900ms);
  CHECK(b.granted());
  w.deafen(role::messages, false);
  w.finish();
}

TEST_CASE("rule: when a lease that was shortened ends, who waits behind it does not sleep until its old end") {
  config settings = seen_by_the_server();
  settings.local_handoff.max_streak = 0;  // its give-back is no hand-off
  for (bool const told : {true, false}) {
    world w(settings);
    w.server.redis.refuses_publish = !told;
    task& a = granted(w, w.acquire(1));
    task& b = w.run(w.acquire(2));
    w.extend(a, 500ms);
    w.pass(600ms);
    CHECK(a.losses == 1);
    CHECK(b.granted());
    w.finish();
  }
}
