#include <support/catch.hpp>
#include <support/unit/stories.hpp>

using namespace latchkey;
using namespace latchkey::test;
using namespace std::chrono_literals;

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
  w.acquire(3);
  w.run();
  auto const before = w.server.ran("EVALSHA");
  wake_the_head(w);
  w.release(a);
  w.run();
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
  task& c = w.acquire(3);
  w.run();
  w.release(a);
  w.run();
  REQUIRE(b.granted());
  auto const before = w.server.ran("EVALSHA");
  wake_the_head(w);
  w.release(b);
  w.mute(role::messages);
  w.mute(role::shared);
  w.run();
  CHECK(w.server.ran("(publish)") == 1);
  CHECK(w.server.ran("EVALSHA") == before + 1);
  CHECK_FALSE(c.done());
  w.mute(role::messages, false);
  w.mute(role::shared, false);
  w.run();
  CHECK(c.granted());
  w.finish();
}

TEST_CASE("rule: who stands behind a waiter that was told busy hears busy, not that no answer came") {
  world w;
  granted(w, w.acquire(1));
  w.acquire(2);
  w.run();
  w.pass(1s);
  task& late = w.acquire(3, {.wait = 100ms});
  w.await(late);
  CHECK(late.busy());
  w.finish();
}
