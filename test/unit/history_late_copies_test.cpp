#include <support/catch.hpp>
#include <support/unit/stories.hpp>

using namespace latchkey;
using namespace latchkey::test;
using namespace std::chrono_literals;

TEST_CASE("history 1: a late release does not end a later hold") {
  for (role const lane : {role::shared, role::direct}) {
    world w({}, 2);
    bool const direct = lane == role::direct;
    task& warm = granted(w, w.acquire(9, {.name = "other", .direct = true}));
    w.run();
    task& a = granted(w, w.acquire(1));
    task* ended = nullptr;
    leave_unread(w, lane, [&] { ended = &w.release(a, direct); });
    w.await(*ended);
    CHECK(ended->released == release_result::released);
    granted(w, w.acquire(1));
    w.server.run_left_behind();
    task& b = w.once(1, {.client = 1});
    w.await(b);
    CHECK(b.busy());
    w.drop(warm);
    w.finish();
  }
}

TEST_CASE("history 2: a late hand-off does not grant again") {
  world w;
  task& a = granted(w, w.acquire(1));
  task& c = w.acquire(3);
  w.run();
  leave_unread(w, role::shared, [&] { w.release(a); });
  w.await(c);
  REQUIRE(c.granted());
  task& back = w.acquire(1);
  w.run();
  w.release(c);
  w.await(back);
  REQUIRE(back.granted());
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
    task& a = w.acquire(1);
    w.run();
    w.cancel(a);
  });
  w.resolve();
  w.server.run_left_behind();
  CHECK(w.server.all().empty());
  w.finish();
}

TEST_CASE("history 4: a late acquire does not run after a busy answer") {
  world w;
  w.drop(granted(w, w.acquire(1, {.name = "other"})));
  w.run();
  task* a = nullptr;
  leave_unread(w, role::shared, [&] { a = &w.once(1); });
  w.server.stranger_takes("k", "stranger:1", 60'000);
  w.await(*a);
  CHECK(a->busy());
  w.server.stranger_releases("k", "stranger:1");
  w.server.run_left_behind();
  CHECK(w.server.all().empty());
  w.finish();
}

TEST_CASE("history 5: a late re-entry does not raise the count") {
  world w;
  task& outer = granted(w, w.acquire(1));
  task* inner = nullptr;
  leave_unread(w, role::shared, [&] { inner = &w.acquire(1); });
  granted(w, *inner);
  w.await(w.release(*inner));
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
  task* inner = nullptr;
  leave_unread(w, role::shared, [&] { inner = &w.acquire(1); });
  granted(w, *inner);
  w.await(w.release(*inner));
  w.server.run_left_behind();
  REQUIRE(w.server.count("k", w.field(1)) == 2);
  task& ended = w.release(outer);
  w.await(ended);
  CHECK(ended.released == release_result::released);
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
  w.mute(role::shared);
  w.run();
  for (std::size_t i = before; i < w.server.log.size(); ++i) CHECK_FALSE(w.server.log[i].starts_with("EVAL"));
  w.mute(role::shared, false);
  w.run();
  CHECK(w.server.ran("EVALSHA release") == 1);
  CHECK(w.server.run_left_behind() == 0);
  w.finish();
}

TEST_CASE("history 14: one request of an owner at a time, even if a script must be sent again") {
  world w;
  task& a = granted(w, w.acquire(1));
  w.server.refuse("EVALSHA release", "NOSCRIPT No matching script. Please use EVAL.");
  w.deafen(role::shared);
  task& ended = w.release(a);
  w.run();
  task& again = w.acquire(1);
  w.run();
  CHECK(again.where == task::place::behind_owner);
  w.deafen(role::shared, false);
  w.await(ended);
  w.await(again);
  CHECK(again.granted());
  CHECK(w.server.count("k", w.field(1)) == 1);
  w.finish();
}
