#include <support/catch.hpp>
#include <support/unit/stories.hpp>

using namespace latchkey;
using namespace latchkey::test;
using namespace std::chrono_literals;

// Rules about who may do what beside whom, docs/safety.md section 5.

namespace {

// Its timer tells of the end, and nothing stays on the server.
void lost_and_given_back(world& w, task& held) {
  w.pass(1ms);
  CHECK(held.losses == 1);
  CHECK(w.server.all().empty());
  w.drop(held);
  w.finish();
}

}  // namespace

TEST_CASE("rule: an owner who holds it never queues") {
  world w;
  task& a = granted(w, w.acquire(1));
  task& b = w.run(w.acquire(2));
  task& again = w.run(w.acquire(1));
  CHECK(again.granted());
  CHECK_FALSE(b.done());
  w.release(again);
  w.run(w.release(a));
  CHECK(b.granted());
  w.finish();
}

TEST_CASE("rule: at a grant the other waiters of the same owner re-enter") {
  world w;
  w.server.stranger_takes("k", "stranger:1", 60'000);
  task& a = w.acquire(1);
  task& b = w.acquire(2);
  task& same = w.run(w.acquire(1));
  w.server.stranger_releases("k", "stranger:1");
  w.run();
  CHECK(a.granted());
  CHECK(same.granted());
  CHECK_FALSE(b.done());
  w.finish();
}

TEST_CASE("rule: a lock is not handed to its own owner") {
  world w;
  task& a = granted(w, w.acquire(1, {.lease = 20s}));
  w.deafen(role::shared);
  task& ended = w.run(w.release(a));
  task& again = w.acquire(1);  // the release is under way
  w.run();
  w.deafen(role::shared, false);
  w.await(ended, again);
  CHECK(again.granted());
  CHECK(w.server.ran("EVALSHA hand_off") == 0);
  CHECK(w.server.count("k", w.field(1)) == 1);
  w.finish();
}

TEST_CASE("rule: the answer to a renewal sent before an extend does not count") {
  world w;
  task& a = granted(w, w.acquire(1));
  w.pass(9'999ms);
  w.mute(role::shared);
  w.pass(1ms);  // the renewal is under way
  REQUIRE(w.server.ran("EVALSHA renew") == 1);
  task& shorter = w.run(w.extend(a, 2s));
  REQUIRE(w.server.ttl("k") == 2'000);
  CHECK(a.shown.until() == w.now + 2s);
  w.mute(role::shared, false).run();
  CHECK(shorter.yes);
  CHECK(a.shown.until() == w.now + 2s);
  w.pass(2s);
  CHECK(a.losses == 1);
  w.drop(a);
  w.finish();
}

TEST_CASE("rule: a hold that has ended is not made longer, also before a timer tells of its end") {
  world w;
  task& a = granted(w, w.acquire(1, {.lease = 5s}));
  w.now += 5s;
  task& late = w.run(w.extend(a, 60s));
  CHECK(late.done());
  CHECK_FALSE(late.yes);
  CHECK(w.server.ran("EVALSHA extend") == 0);
  lost_and_given_back(w, a);
}

TEST_CASE("rule: an extension whose answer comes after the hold has ended brings nothing back") {
  world w;
  task& a = granted(w, w.acquire(1, {.lease = 5s}));
  w.pass(4s);
  w.mute(role::shared);
  task& late = w.run(w.extend(a, 60s));
  REQUIRE(w.server.ttl("k") == 60'000);
  w.now += 1s;
  w.mute(role::shared, false).run();  // the answer before the timer
  CHECK(late.done());
  CHECK_FALSE(late.yes);
  CHECK_FALSE(a.trusted(w.now));
  lost_and_given_back(w, a);
}

TEST_CASE("rule: an extension that leaves after the hold has ended makes nothing longer") {
  world w;
  task& a = granted(w, w.acquire(1, {.lease = 5s}));
  granted(w, w.acquire(1, {.lease = 20s}));
  w.lose(role::shared, fate::gone);
  task& late = w.extend(a, 60s);
  w.now += 5s;
  w.run();  // connected again before the timer
  CHECK(late.done());
  CHECK_FALSE(late.yes);
  CHECK(w.server.ttl("k") <= 15'000);
  w.pass(1ms);
  CHECK(a.losses == 1);
  CHECK(w.server.count("k", w.field(1)) == 1);
  w.drop(a);
  w.finish();
}

TEST_CASE("rule: closing after a lease ended, with a re-entry and an extension on the way") {
  world w;
  task& a = granted(w, w.acquire(1, {.lease = 5s}));
  task& waiter = w.run(w.acquire(2));
  w.now += 5s;
  task& again = w.acquire(1, {.lease = 5s});
  task& late = w.extend(a, 60s);
  w.close();
  CHECK(waiter.error == errc::closed);
  CHECK(again.done());
  CHECK(late.done());
  w.run();
  w.drop(a);
  w.finish();
}

TEST_CASE("rule: a hold is made longer while another one of its owner ends") {
  world w;
  task& brief = granted(w, w.acquire(1, {.lease = 5s}));
  task& longer = granted(w, w.acquire(1, {.lease = 20s}));
  w.now += 5s;
  task& extension = w.run(w.extend(longer, 60s));
  CHECK(extension.yes);
  CHECK(extension.completions == 1);
  CHECK(longer.shown.until() == w.now + 60s);
  w.pass(1ms);
  CHECK(brief.losses == 1);
  CHECK(w.server.count("k", w.field(1)) == 1);
  CHECK(w.server.ttl("k") == 59'999);
  w.drop(brief);
  w.finish();
}

TEST_CASE("rule: extend keeps what the owner's other holds need") {
  world w;
  task& outer = granted(w, w.acquire(1, {.lease = 60s}));
  task& inner = granted(w, w.acquire(1, {.lease = 5s}));
  w.await(w.extend(inner, 2s));
  CHECK(w.server.ttl("k") == 60'000);
  CHECK(inner.shown.until() == w.now + 2s);
  CHECK(outer.shown.until() == w.now + 60s);
  w.finish();
}

TEST_CASE("rule: a first grant proves that the other holds of this client are lost") {
  world w;
  w.watch_holds = false;
  task& a = granted(w, w.acquire(1));
  w.server.redis.data.clear();  // a failover without the last write
  CHECK(w.await(w.once(2)).granted());
  CHECK(a.losses == 1);
  CHECK(a.why_lost == errc::lease_lost);
  w.drop(a);
  w.finish();
}

TEST_CASE("rule: a first grant also ends what a re-entry is told too late that it has") {
  world w;
  warm_up(w, true);
  task& a = granted(w, w.acquire(1));
  w.mute(role::shared);
  task& again = w.run(w.acquire(1));
  REQUIRE(w.server.count("k", w.field(1)) == 2);
  a.removed = true;
  w.server.redis.data.clear();  // deleted behind its answer
  task& b = w.await(w.once(2, {.direct = true}));
  CHECK(b.granted());
  CHECK(a.losses == 1);
  w.mute(role::shared, false).run();
  CHECK_FALSE(again.done());
  w.release(b);
  granted(w, again);
  w.drop(a);
  w.finish();
}

TEST_CASE("rule: a re-entry that finds nothing tells the outer holds, then waits like everybody") {
  world w;
  w.watch_holds = false;
  task& a = granted(w, w.acquire(1));
  w.server.redis.data.clear();
  w.server.stranger_takes("k", "stranger:1", 60'000);
  task& again = w.run(w.acquire(1));
  CHECK(a.losses == 1);
  CHECK_FALSE(again.done());
  w.server.stranger_releases("k", "stranger:1");
  w.run();
  CHECK(again.granted());
  CHECK(w.server.count("k", w.field(1)) == 1);
  w.drop(a);
  w.finish();
}

TEST_CASE("rule: while a lease is being given back, a new try of that name waits") {
  for (bool const sent : {false, true}) {
    world w;
    warm_up(w, true);
    task& a = granted(w, w.acquire(1, {.direct = true}));
    w.drop(a);
    w.deafen(role::shared);
    if (sent) w.run();
    task& b = w.once(2, {.direct = true});  // its lane would overtake the release
    w.run();
    CHECK(b.done() == !sent);  // one that is not sent yet is taken along
    w.deafen(role::shared, false);
    granted(w, b);
    w.finish();
  }
}

TEST_CASE("rule: a try that nobody wants any more is awaited by the next one") {
  world w;
  warm_up(w);
  w.deafen(role::shared);
  w.cancel(w.acquire(1));
  task& a = w.run(w.acquire(2));
  w.cancel(a);
  task& b = w.run(w.once(3));
  CHECK_FALSE(b.done());  // it would meet what is given back
  w.deafen(role::shared, false);
  granted(w, b);
  w.finish();
}

TEST_CASE("rule: while the release of a dropped lease waits for its KILL, a new try of that name waits") {
  world w;
  task& a = granted(w, w.acquire(1));
  w.deafen(role::shared);
  w.drop(a).run();
  w.lose(role::shared, fate::gone);
  CHECK(w.await(w.once(2)).granted());
  w.finish();
}

TEST_CASE("rule: a release and a first try in one group count as a hand-off") {
  world w(streak_of(3, 1s));
  task* held = &granted(w, w.acquire(1));
  for (std::uint64_t owner = 2; owner < 10; ++owner) {
    w.drop(*held);
    held = &granted(w, w.acquire(owner));
  }
  CHECK(w.server.ran("(publish)") >= 2);
  CHECK(w.snapshot().handed_off <= 6);
  w.finish();
}
