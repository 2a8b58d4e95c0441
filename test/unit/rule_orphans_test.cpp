#include <support/catch.hpp>
#include <support/unit/stories.hpp>

using namespace latchkey;
using namespace latchkey::test;
using namespace std::chrono_literals;

// Rules of the session, docs/safety.md section 5: what each of them prevents when it is taken out.

TEST_CASE("rule: a discarded connection is killed before anything is repeated") {
  world w;
  warm_up(w, true);
  for (role const lane : {role::shared, role::direct}) {
    task& a = *leave_unread(w, lane, [&] { return &w.acquire(1, {.direct = lane == role::direct}); });
    granted(w, a);
    CHECK(w.server.run_left_behind() == 0);
    w.run(w.release(a));
  }
  CHECK(w.server.ran("CLIENT KILL ID") == 2);
  CHECK(w.snapshot().kills == 2);
  w.finish();
}

TEST_CASE("rule: every discarded connection is killed, not the newest only") {
  world w;
  task& a = granted(w, w.acquire(1));
  leave_unread(w, role::shared, [&] { w.release(a); });
  w.until([&] { return w.snapshot().connected; });
  leave_unread(w, role::shared, [&] { w.acquire(2, {.name = "other"}); });  // and the KILL of the first one too
  w.until([&] { return w.at_ease(); });
  CHECK(w.server.ran("CLIENT KILL ID") == 2);
  CHECK(w.server.run_left_behind() == 0);
  w.finish();
}

TEST_CASE("rule: BUSY is no answer to a KILL") {
  world w;
  task& a = granted(w, w.acquire(1));
  w.server.refuse("CLIENT KILL ID",
                  "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.", 2);
  task& ended = *leave_unread(w, role::shared, [&] { return &w.release(a); });
  w.until([&] { return w.server.ran("CLIENT KILL ID") == 1; });
  w.run();
  CHECK_FALSE(ended.done());
  CHECK(w.server.ran("EVALSHA release") == 0);
  w.await(ended);
  CHECK(w.server.ran("CLIENT KILL ID") == 3);
  CHECK(w.server.run_left_behind() == 0);
  w.finish();
}

TEST_CASE("rule: an answer that comes after its connection was given up is not believed") {
  world w;
  task& other = granted(w, w.acquire(9, {.name = "other", .direct = true}));
  w.run();
  w.mute(role::shared);
  task& a = w.run(w.acquire(1, {.lease = 4s}));
  REQUIRE(w.server.has("k", w.field(1)));
  w.unreachable = "no route";
  auto const old = w.serial(role::shared);
  w.pass(3'500ms);  // past the time-out
  CHECK_FALSE(w.connected(role::shared));
  w.hear(old, "*1\r\n:-3\r\n");
  CHECK_FALSE(a.done());
  w.unreachable.clear();
  granted(w, a);
  CHECK(a.shown.until() > w.now + 2s);
  w.drop(other);
  w.finish();
}

TEST_CASE("rule: a borrower's answer does not count after the lane was taken back") {
  world w;
  warm_up(w, true);
  w.borrower_stuck = true;
  task& a = w.run(w.acquire(1, {.direct = true}));
  auto const old = w.serial(role::direct);
  w.pass(2'999ms);
  w.wait_for_next();  // past the time-out, and nothing else has happened yet
  detail::actions out;
  reply late = model::array({model::number(-3)});
  CHECK(w.machine().lane_answer(old, std::move(late), w.now, out) == client_machine::lane_next::taken);
  CHECK(out.empty());
  w.borrower_stuck = false;
  granted(w, a);
  w.finish();
}

TEST_CASE("rule: a borrower that is not scheduled keeps nobody from the lock") {
  world w;
  task& first = granted(w, w.acquire(9, {.direct = true}));
  w.run();
  w.borrower_stuck = true;
  w.deafen(role::direct);
  w.run(w.release(first, true));
  task& a = w.acquire(1);
  w.pass(4s);
  CHECK(a.granted());
  w.borrower_stuck = false;
  w.finish();
}

TEST_CASE("rule: the lanes end with their session") {
  world w;
  task& first = granted(w, w.acquire(9, {.name = "other", .direct = true}));
  w.run();
  task& waiter = w.run(w.acquire(8, {.name = "other"}));
  REQUIRE(w.connected(role::direct));
  REQUIRE(w.connected(role::messages));
  stepped_server& second = w.add_server();
  w.lose(role::shared, fate::gone);
  w.step();
  CHECK_FALSE(w.connected(role::direct));
  CHECK_FALSE(w.connected(role::messages));
  task& a = granted(w, w.acquire(1, {.direct = true}));
  CHECK(w.server.count("k", w.field(1)) == 0);
  CHECK(second.count("k", w.field(1)) == 1);
  w.run();
  CHECK(second.subscriptions() == 1);
  second.stranger_forces("other");
  second.publish("redisson_lock__channel:{other}", "0");
  w.run();
  CHECK(waiter.granted());
  w.drop(a);
  w.drop(first);
  w.server.redis.data.clear();
  w.finish();
}

TEST_CASE("rule: a lane that leads to another server is not used") {
  world w;
  task& first = granted(w, w.acquire(9, {.name = "other"}));
  stepped_server& second = w.add_server();
  w.lanes_resolve_anew = true;  // a virtual address
  for (std::uint64_t i = 1; i < 4; ++i) {
    task& a = granted(w, w.acquire(i, {.direct = true}));
    CHECK(w.server.count("k", w.field(i)) == 1);
    w.await(w.release(a, true));
    w.run();
  }
  CHECK(second.ran("EVAL") == 0);
  CHECK(second.ran("CLIENT INFO") >= 1);
  w.lanes_resolve_anew = false;
  w.drop(first);
  w.resolve_to(w.server);
  w.finish();
}

TEST_CASE("rule: a force_unlock is never sent again") {
  for (bool const direct : {false, true}) {
    world w;
    w.watch_holds = false;
    warm_up(w, true);
    w.server.stranger_takes("k", "stranger:1", 60'000);
    task& forced = *leave_unanswered(w, role::shared, [&] { return &w.force_unlock({.direct = direct}); });
    w.server.stranger_takes("k", "stranger:2", 60'000);
    w.await(forced);
    CHECK(forced.error == errc::connection_lost);
    CHECK(w.server.has("k", "stranger:2"));
    CHECK(w.server.ran("EVALSHA force_unlock") == 1);
    w.server.stranger_releases("k", "stranger:2");
    w.finish();
  }
}

TEST_CASE("rule: the caller of a force_unlock hears of its loss only after the KILL") {
  world w;
  w.watch_holds = false;
  w.drop(granted(w, w.acquire(9, {.name = "other"})));
  w.server.stranger_takes("k", "stranger:1", 60'000);
  task& forced = *leave_unread(w, role::shared, [&] { return &w.force_unlock(); });
  w.until([&] { return w.server.ran("CLIENT KILL ID") == 1 || forced.done(); });
  CHECK_FALSE(forced.done());
  w.run();
  CHECK(forced.done());
  CHECK(w.server.run_left_behind() == 0);
  CHECK(w.server.has("k", "stranger:1"));
  w.server.stranger_releases("k", "stranger:1");
  w.finish();
}
