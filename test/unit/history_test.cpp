#include <support/catch.hpp>
#include <support/unit/stories.hpp>

using namespace latchkey;
using namespace latchkey::test;
using namespace std::chrono_literals;

TEST_CASE("history 1: a late release does not end a later hold") {
  for (role const lane : {role::shared, role::direct}) {
    world w(seen_by_the_server(), 2);
    bool const direct = lane == role::direct;
    task& warm = granted(w, w.acquire(9, {.name = "other", .direct = true}));
    w.run();
    task& a = granted(w, w.acquire(1));
    task& ended = *leave_unread(w, lane, [&] { return &w.release(a, direct); });
    w.await(ended);
    CHECK(ended.released == release_result::released);
    granted(w, w.acquire(1));
    w.server.run_left_behind();
    CHECK(w.await(w.once(1, {.client = 1})).busy());
    w.drop(warm);
    w.finish();
  }
}

TEST_CASE("history 2: a late hand-off does not grant again") {
  world w;
  task& a = granted(w, w.acquire(1));
  task& c = w.run(w.acquire(3));
  leave_unread(w, role::shared, [&] { w.release(a); });
  granted(w, c);
  task& back = w.run(w.acquire(1));
  w.release(c);
  granted(w, back);
  w.server.run_left_behind();
  CHECK(w.server.all() == std::set<std::string>{"k/" + w.field(1) + "=1"});
  w.finish();
}

TEST_CASE("history 3: a late acquire whose caller gave up leaves no ghost") {
  world w;
  granted(w, w.acquire(1, {.name = "other"}));
  leave_unread(w, role::shared, [&] { w.cancel(w.acquire(1)); });
  // Cancelled before it was sent, it would not be there at all.
  REQUIRE(w.server.all().size() == 1);
  w.resolve();
  leave_unread(w, role::shared, [&] {
    task& a = w.run(w.acquire(1));
    w.cancel(a);
  });
  w.resolve();
  w.server.run_left_behind();
  CHECK(w.server.all().empty());
  w.finish();
}

TEST_CASE("history 4: a late acquire does not run after a busy answer") {
  world w;
  w.drop(granted(w, w.acquire(1, {.name = "other"}))).run();
  task& a = *leave_unread(w, role::shared, [&] { return &w.once(1); });
  w.server.stranger_takes("k", "stranger:1", 60'000);
  w.await(a);
  CHECK(a.busy());
  w.server.stranger_releases("k", "stranger:1");
  w.server.run_left_behind();
  CHECK(w.server.all().empty());
  w.finish();
}

TEST_CASE("history 5: a late re-entry does not raise the count") {
  world w;
  task& outer = granted(w, w.acquire(1));
  task& inner = *leave_unread(w, role::shared, [&] { return &w.acquire(1); });
  granted(w, inner);
  w.await(w.release(inner));
  w.server.run_left_behind();
  CHECK(w.server.count("k", w.field(1)) == 1);
  w.release(outer);
  w.finish();
}

TEST_CASE("history 5: where KILL is refused, the count that a request names heals what a late copy did") {
  world w;
  w.server.refuse("CLIENT PROBE", "NOPERM this user has no permissions to run the 'client|kill' command", -1);
  task& outer = granted(w, w.acquire(1));
  CHECK_FALSE(w.snapshot().fenced);
  task& inner = *leave_unread(w, role::shared, [&] { return &w.acquire(1); });
  granted(w, inner);
  w.await(w.release(inner));
  w.server.run_left_behind();
  REQUIRE(w.server.count("k", w.field(1)) == 2);
  CHECK(w.await(w.release(outer)).released == release_result::released);
  CHECK(w.server.all().empty());
  w.finish();
}

TEST_CASE("history 7: a late renewal is killed with its connection") {
  world w;
  task& a = granted(w, w.acquire(1));
  w.pass(9s);
  leave_unread(w, role::shared, [&] { w.pass(1s); });
  w.await(w.release(a));
  granted(w, w.acquire(1, {.lease = 100s}));
  w.run();
  CHECK(w.server.run_left_behind() == 0);
  CHECK(w.server.ttl("k") == 100'000);
  w.finish();
}

TEST_CASE("history 7: where KILL is refused, a late renewal does not shorten the lease") {
  world w;
  w.server.refuse("CLIENT PROBE", "NOPERM this user has no permissions to run the 'client|kill' command", -1);
  task& a = granted(w, w.acquire(1));
  w.pass(9s);
  leave_unread(w, role::shared, [&] { w.pass(1s); });
  w.await(w.release(a));
  granted(w, w.acquire(1, {.lease = 100s}));
  REQUIRE(w.server.run_left_behind() == 1);
  CHECK(w.server.ttl("k") == 100'000);
  w.finish();
}

TEST_CASE("history 13: KILL comes first, and nothing is repeated before its answer") {
  world w;
  task& a = granted(w, w.acquire(1));
  leave_unread(w, role::shared, [&] { w.release(a); });
  std::size_t const before = w.server.log.size();
  w.until([&] { return w.server.ran("CLIENT KILL") == 1; });
  w.mute(role::shared).run();
  for (std::size_t i = before; i < w.server.log.size(); ++i) CHECK_FALSE(w.server.log[i].starts_with("EVAL"));
  w.mute(role::shared, false).run();
  CHECK(w.server.ran("EVALSHA release") == 1);
  CHECK(w.server.run_left_behind() == 0);
  w.finish();
}

TEST_CASE("history 14: one request of an owner at a time, even if a script must be sent again") {
  world w;
  task& a = granted(w, w.acquire(1));
  w.server.refuse("EVALSHA release", "NOSCRIPT No matching script. Please use EVAL.");
  w.deafen(role::shared);
  task& ended = w.run(w.release(a));
  task& again = w.run(w.acquire(1));
  CHECK(again.where == task::place::behind_owner);
  w.deafen(role::shared, false);
  w.await(ended, again);
  CHECK(again.granted());
  CHECK(w.server.count("k", w.field(1)) == 1);
  w.finish();
}

TEST_CASE("history 6: a re-entry that is answered after the outer hold lapsed leaves no ghost") {
  world w(patient());
  task& outer = granted(w, w.acquire(1, {.lease = 5s}));
  w.pass(4s);
  w.mute(role::shared);
  task& inner = w.run(w.acquire(1, {.wait = 1s, .lease = 50s}));
  REQUIRE(w.server.count("k", w.field(1)) == 2);
  w.pass(2s);
  CHECK(outer.losses == 1);
  w.cancel(inner);
  w.mute(role::shared, false).run();
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
  CHECK(w.await(w.release(third)).released == release_result::still_held);
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
  w.deafen(role::shared, false).run();
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
  w.mute(role::shared, false).run();
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
  task& ended = *leave_unanswered(w, role::shared, [&] { return &w.release(a); });
  w.await(ended);
  CHECK(w.server.ran("EVALSHA release") == 2);
  CHECK(ended.released == release_result::released);
  CHECK_FALSE(ended.error);
  w.finish();
}

TEST_CASE("history 11: absent in the first answer means expired") {
  world w;
  w.watch_holds = false;
  task& a = granted(w, w.acquire(1));
  w.server.redis.data.clear();
  task& ended = w.await(w.release(a));
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
  w.await(ended, c);
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
    w.mute(direct ? role::direct : role::shared, false).run();
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
  w.mute(role::shared, false).run();
  CHECK(a.losses == 1);
  CHECK_FALSE(a.trusted(w.now));
  w.finish();
}
