#include <support/catch.hpp>
#include <support/unit/stories.hpp>

using namespace latchkey;
using namespace latchkey::test;
using namespace std::chrono_literals;

TEST_CASE("history 6: a re-entry that is answered after the outer hold lapsed leaves no ghost") {
  world w(patient());
  task& outer = granted(w, w.acquire(1, {.lease = 5s}));
  w.pass(4s);
  w.mute(role::shared);
  task& inner = w.acquire(1, {.wait = 1s, .lease = 50s});
  w.run();
  REQUIRE(w.server.count("k", w.field(1)) == 2);
  w.pass(2s);
  CHECK(outer.losses == 1);
  w.cancel(inner);
  w.mute(role::shared, false);
  w.run();
  CHECK(w.server.all().empty());
  w.drop(outer);
  w.finish();
}

TEST_CASE("history 8: a renewal does not shorten what a longer re-entry needs") {
  world w;
  granted(w, w.acquire(1));
  task& inner = granted(w, w.acquire(1, {.lease = 200s}));
  w.pass(15s);
  CHECK(w.server.ttl("k") >= 185'000);
  CHECK(inner.shown.until() - w.now == 185s);
  w.finish();
}

TEST_CASE("history 8: a short re-entry does not shorten the outer hold") {
  world w;
  task& outer = granted(w, w.acquire(1, {.lease = 100s}));
  granted(w, w.acquire(1, {.lease = 1s}));
  CHECK(w.server.ttl("k") == 100'000);
  w.pass(2s);
  CHECK(outer.losses == 0);
  CHECK(w.server.ttl("k") == 98'000);
  w.finish();
}

TEST_CASE("history 9: a partial release keeps the longest lease that stays") {
  world w;
  granted(w, w.acquire(1, {.lease = 100s}));
  granted(w, w.acquire(1, {.lease = 2s}));
  task& third = granted(w, w.acquire(1, {.lease = 50s}));
  task& ended = w.release(third);
  w.await(ended);
  CHECK(ended.released == release_result::still_held);
  CHECK(w.server.ttl("k") == 100'000);
  w.finish();
}

TEST_CASE("history 9: a watchdog hold that stays counts the whole watchdog time") {
  world w;
  granted(w, w.acquire(1));
  w.pass(8s);
  task& inner = granted(w, w.acquire(1, {.lease = 1s}));
  w.await(w.release(inner));
  CHECK(w.server.ttl("k") == 30'000);
  w.finish();
}

TEST_CASE("history 10: a hold lost while its renewal is under way is given back") {
  world w(patient());
  task& a = granted(w, w.acquire(1));
  w.pass(9s);
  w.deafen(role::shared);
  w.pass(20s);
  w.mute(role::shared);
  w.deafen(role::shared, false);
  w.run();
  REQUIRE(w.server.ttl("k") == 30'000);
  w.pass(1s);
  CHECK(a.losses == 1);
  w.run();
  CHECK(w.server.all().empty());
  w.mute(role::shared, false);
  w.drop(a);
  w.finish();
}

TEST_CASE("history 10: a hold lost while its re-entry is under way is given back") {
  world w(patient());
  task& outer = granted(w, w.acquire(1, {.lease = 5s}));
  w.pass(4s);
  w.mute(role::shared);
  task& inner = w.acquire(1, {.lease = 50s});
  w.pass(2s);
  CHECK(outer.losses == 1);
  w.mute(role::shared, false);
  w.run();
  CHECK(inner.granted());
  CHECK(w.server.count("k", w.field(1)) == 1);
  w.drop(outer);
  w.finish();
}

TEST_CASE("history 11: a release that may have come too late says so") {
  world w;
  task& a = granted(w, w.acquire(1, {.lease = 5s}));
  w.pass(4'500ms);
  w.deafen(role::shared);
  task& ended = w.release(a);
  w.pass(1s);
  CHECK_FALSE(ended.done());
  w.lose(role::shared, fate::gone);
  w.await(ended);
  CHECK(ended.released == release_result::unknown);
  CHECK(ended.error == errc::connection_lost);
  w.finish();
}

TEST_CASE("history 11: absent in the second answer means released while the lease still ran") {
  world w;
  task& a = granted(w, w.acquire(1, {.lease = 5s}));
  task* ended = nullptr;
  leave_unanswered(w, role::shared, [&] { ended = &w.release(a); });
  w.await(*ended);
  CHECK(w.server.ran("EVALSHA release") == 2);
  CHECK(ended->released == release_result::released);
  CHECK_FALSE(ended->error);
  w.finish();
}

TEST_CASE("history 11: absent in the first answer means expired") {
  world w;
  w.watch_holds = false;
  task& a = granted(w, w.acquire(1));
  w.server.clear();
  task& ended = w.release(a);
  w.await(ended);
  CHECK(ended.released == release_result::expired);
  CHECK(ended.error == errc::lease_lost);
  w.finish();
}

TEST_CASE("history 12: a hand-off that found the holder expired grants, and does not say released") {
  world w;
  task& a = granted(w, w.acquire(1, {.lease = 5s}));
  task& c = w.acquire(3);
  w.pass(4'900ms);
  w.deafen(role::shared);
  task& ended = w.release(a);
  w.pass(200ms);
  w.lose(role::shared, fate::ran);
  w.await(ended);
  w.await(c);
  CHECK(ended.released == release_result::unknown);
  CHECK(c.granted());
  CHECK(w.server.all() == std::set<std::string>{"k/" + w.field(3) + "=1"});
  w.finish();
}

TEST_CASE("history 15: a lease counts from when its request was sent") {
  for (bool const direct : {false, true}) {
    world w;
    warm_up(w, true);
    w.mute(direct ? role::direct : role::shared);
    instant const sent = w.now;
    task& a = w.acquire(1, {.lease = 5s, .direct = direct});
    w.pass(2s);
    w.mute(direct ? role::direct : role::shared, false);
    w.run();
    REQUIRE(a.granted());
    CHECK(a.shown.until() == sent + 5s);
    w.finish();
  }
}

TEST_CASE("a hold whose time is over does not come to life by the late answer to its renewal") {
  world w;
  task& a = granted(w, w.acquire(1));
  w.pass(9'999ms);
  w.mute(role::shared);
  w.pass(2ms);
  w.now += 25s;  // the process stood still, and reads before it looks at its timers
  w.mute(role::shared, false);
  w.run();
  CHECK(a.losses == 1);
  CHECK_FALSE(a.trusted(w.now));
  w.finish();
}
