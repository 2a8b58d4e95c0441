#include <support/catch.hpp>
#include <support/unit/stories.hpp>

namespace rule_unsent {

using namespace latchkey;
using namespace latchkey::test;
using namespace std::chrono_literals;

// Requests that wait for the end of a turn, or for a KILL, and what happens to them meanwhile.

TEST_CASE("rule: giving up an acquire that took the place of an unsent release gives back") {
  world w;
  w.drop(granted(w, w.acquire(1)));
  w.cancel(w.acquire(1)).run();
  CHECK(w.server.all().empty());
  w.finish();
}

TEST_CASE("rule: an unsent hand-off whose grantee leaves is the release that it was") {
  world w;
  task& a = granted(w, w.acquire(1));
  task& ended = w.release(a);
  task& c = w.acquire(3);
  task& d = w.acquire(4);
  w.cancel(c).run();
  CHECK(ended.released == release_result::released);
  CHECK(d.granted());
  w.finish();
}

TEST_CASE("rule: an unsent hand-off whose only grantee leaves frees the lock") {
  world w;
  task& a = granted(w, w.acquire(1));
  task& ended = w.release(a);
  w.cancel(w.acquire(3)).run();
  CHECK(ended.done());
  CHECK(w.server.all().empty());
  w.finish();
}

TEST_CASE("rule: giving up an acquire that is to be sent again gives back what its first copy did") {
  world w;
  warm_up(w);
  task& a = *leave_unanswered(w, role::shared, [&] { return &w.acquire(1); });
  REQUIRE(w.server.has("k", w.field(1)));
  w.until([&] { return w.snapshot().in_doubt == 0; });
  w.cancel(a).run();
  CHECK(w.server.all().empty());
  w.finish();
}

TEST_CASE("rule: giving up a hand-off that is to be sent again, or waits for its KILL, gives back and still releases") {
  bool const sent_again = GENERATE(true, false);
  world w;
  task& a = granted(w, w.acquire(1));
  task& c = w.run(w.acquire(3));
  task& ended = *leave_unanswered(w, role::shared, [&] { return &w.release(a); });
  REQUIRE(w.server.has("k", w.field(3)));
  REQUIRE(w.snapshot().in_doubt > 0);
  if (sent_again) w.until([&] { return w.snapshot().in_doubt == 0; });
  w.cancel(c).run();
  CHECK(ended.released == release_result::released);
  CHECK(w.server.all().empty());
  w.finish();
}

TEST_CASE("rule: when the outer hold lapses while a re-entry waits to be sent, the server is told") {
  for (bool const gives_up : {true, false}) {
    world w(patient());
    task& outer = hold_kept_longer(w, 1, 5s);  // until 5 s, on the server until 7 s
    w.pass(2'900ms);
    w.unreachable = "no route";
    w.lose(role::shared, fate::gone).run();
    task& again = w.acquire(1);
    w.pass(200ms);
    REQUIRE(outer.losses == 1);
    if (gives_up) w.cancel(again);
    w.unreachable.clear();
    w.pass(500ms);
    CHECK(w.server.count("k", w.field(1)) == (gives_up ? 0 : 1));
    CHECK(again.granted() == !gives_up);
    w.drop(outer);
    w.finish();
  }
}

TEST_CASE("rule: when the outer hold lapses while a re-entry waits to be sent, it queues behind the others") {
  world w(patient());
  task& outer = hold_kept_longer(w, 1, 5s);
  task& b = w.run(w.acquire(2));
  w.pass(2'900ms);
  w.unreachable = "no route";
  w.lose(role::shared, fate::gone).run();
  task& again = w.acquire(1);
  w.pass(200ms);
  REQUIRE(outer.losses == 1);
  w.unreachable.clear();
  w.pass(500ms);
  CHECK(b.granted());
  CHECK_FALSE(again.done());
  w.drop(outer);
  w.finish();
}

TEST_CASE("rule: when one of two outer holds lapses while a re-entry waits, giving it up tells the server") {
  world w(patient());
  task& outer = hold_kept_longer(w, 1, 60s);
  task& second = granted(w, w.acquire(1, {.lease = 3s}));
  w.pass(2'900ms);
  w.unreachable = "no route";
  w.lose(role::shared, fate::gone).run();
  task& again = w.acquire(1);
  w.pass(200ms);
  REQUIRE(second.losses == 1);
  REQUIRE(outer.losses == 0);
  w.cancel(again);
  w.unreachable.clear();
  w.pass(500ms);
  CHECK(w.server.count("k", w.field(1)) == 1);
  w.drop(second);
  w.finish();
}

TEST_CASE("rule: when the outer hold lapses while a re-entry waits for its KILL, it queues behind the others") {
  world w(patient());
  task& outer = granted(w, w.acquire(1, {.lease = 5s}));
  task& b = w.run(w.acquire(2));
  w.pass(4'500ms);
  task* again = nullptr;
  leave_unread(w, role::shared, [&] {
    again = &w.acquire(1);
    w.unreachable = "no route";
  });
  w.pass(1s);
  REQUIRE(outer.losses == 1);
  w.unreachable.clear();
  w.pass(500ms);
  CHECK(b.granted());
  CHECK_FALSE(again->done());
  w.run(w.release(b));
  CHECK(again->granted());
  w.drop(outer);
  w.finish();
}

TEST_CASE("rule: a release that waits for its KILL names what is still held when it is sent again") {
  world w(patient());
  task& first = granted(w, w.acquire(1, {.lease = 5s}));
  task& second = granted(w, w.acquire(1, {.lease = 60s}));
  w.pass(4'500ms);
  task* ended = nullptr;
  leave_unread(w, role::shared, [&] {
    ended = &w.release(second);
    w.unreachable = "no route";
  });
  w.pass(1s);
  REQUIRE(first.losses == 1);
  w.unreachable.clear();
  w.pass(500ms);
  CHECK(ended->released == release_result::released);
  CHECK(w.server.all().empty());
  w.drop(first);
  w.finish();
}

// A message wakes the head, and in the same turn the holder, of the same client, releases: the try has not left yet.

namespace {

void wake_the_head(world& w) {
  w.inject(role::messages, "*3\r\n$7\r\nmessage\r\n$26\r\nredisson_lock__channel:{k}\r\n$1\r\n0\r\n");
}

}  // namespace

TEST_CASE("rule: a try that has not left becomes part of the release of this client") {
  world w(streak_of(64));
  task& a = granted(w, w.acquire(1));
  task& b = w.acquire(2);
  w.run(w.acquire(3));
  auto const before = w.server.ran("EVALSHA");
  wake_the_head(w);
  w.run(w.release(a));
  CHECK(b.granted());
  CHECK(w.snapshot().handed_off == 1);
  CHECK(w.server.ran("EVALSHA") == before + 1);
  CHECK(w.server.ran("(publish)") == 0);
  w.finish();
}

TEST_CASE("rule: at the end of a streak a try that has not left does not travel with the release") {
  world w(streak_of(1));
  task& a = granted(w, w.acquire(1));
  task& b = w.acquire(2);
  task& c = w.run(w.acquire(3));
  w.run(w.release(a));
  REQUIRE(b.granted());
  auto const before = w.server.ran("EVALSHA");
  wake_the_head(w);
  w.release(b);
  w.mute(role::messages);
  w.mute(role::shared).run();
  CHECK(w.server.ran("(publish)") == 1);
  CHECK(w.server.ran("EVALSHA") == before + 1);
  CHECK_FALSE(c.done());
  w.mute(role::messages, false);
  w.mute(role::shared, false);
  granted(w, c);
  w.finish();
}

TEST_CASE("rule: who stands behind a waiter that was told busy hears busy, not that no answer came") {
  world w;
  granted(w, w.acquire(1));
  w.run(w.acquire(2));
  w.pass(1s);
  CHECK(w.await(w.acquire(3, {.wait = 100ms})).busy());
  w.finish();
}

}  // namespace rule_unsent
