#include <support/catch.hpp>
#include <support/patience.hpp>
#include <support/unit/stories.hpp>

#include <algorithm>

using namespace latchkey;
using namespace latchkey::test;
using namespace std::chrono_literals;

TEST_CASE("watchdog: what can be renewed together is") {
  world w({.lock_watchdog_batch_size = 10});
  for (int i = 0; i < 25; ++i) {
    w.acquire(1, {.name = "k" + std::to_string(i)});
    w.pass(20ms);  // all within a tenth of a period
  }
  w.pass(10s);
  CHECK(w.server.ran("EVALSHA renew") == 3);
  CHECK(w.snapshot().renewals == 25);
  w.finish();
}

TEST_CASE("watchdog: without an answer it asks again soon, and gives up only at the deadline") {
  world w;
  task& a = granted(w, w.acquire(1));
  w.server.refuse("EVALSHA renew", "LOADING Redis is loading the dataset in memory", -1);
  w.pass(15s);
  CHECK(w.server.ran("EVALSHA renew") > 5);
  CHECK(w.noted(event_type::at_risk) == 1);
  CHECK(a.losses == 0);
  w.server.accept_all();
  w.pass(2s);
  CHECK(a.shown.until() > w.now + 28s);
  w.server.refuse("EVALSHA renew", "LOADING Redis is loading the dataset in memory", -1);
  w.pass(45s);
  CHECK(a.losses == 1);
  CHECK(a.why_lost == errc::lease_lost);
  w.drop(a);
  w.finish();
}

TEST_CASE("watchdog: several calls that a server turns away after a reconnect go again soon") {
  world w({.lock_watchdog_batch_size = 10});
  for (int i = 0; i < 25; ++i) granted(w, w.acquire(1, {.name = "k" + std::to_string(i)}));
  w.server.refuse("EVALSHA renew", "LOADING Redis is loading the dataset in memory", 3);
  w.lose(role::shared, fate::gone);
  w.pass(1s);
  CHECK(w.snapshot().renewals == 25);
  w.pass(60s);
  CHECK(w.snapshot().lost == 0);
  w.finish();
}

TEST_CASE("watchdog: no link for a while") {
  world w;
  task& a = granted(w, w.acquire(1));
  task& b = granted(w, w.acquire(2, {.name = "other", .lease = 10s}));
  w.unreachable = "no route";
  w.lose(role::shared, fate::gone);
  w.pass(8s);
  CHECK(w.noted(event_type::at_risk) == 0);
  w.pass(17s);
  CHECK(w.noted(event_type::at_risk) == 1);  // of the one that was to be renewed
  CHECK(a.losses == 0);
  CHECK(b.losses == 1);
  w.unreachable.clear();
  w.pass(2s);
  CHECK(a.shown.until() > w.now + 27s);
  w.drop(b);
  w.finish();
}

TEST_CASE("watchdog: what is gone on the server is lost here") {
  world w;
  w.watch_holds = false;
  task& a = granted(w, w.acquire(1));
  task& b = granted(w, w.acquire(1, {.name = "other"}));
  w.server.remove("k");
  w.pass(10s);
  CHECK(a.losses == 1);
  CHECK(b.losses == 0);
  w.drop(a);
  w.finish();
}

TEST_CASE("watchdog: the old end of a hold that was renewed wakes nobody", "[edge-25]") {
  world w({.ping_interval = 0ms});
  granted(w, w.acquire(1));
  w.pass(900ms);
  granted(w, w.acquire(1, {.name = "other"}));  // renewed with the first, so that its end lies between two renewals
  w.pass(29'200ms);
  CHECK(w.snapshot().renewals == 6);
  CHECK(w.machine().wake_at() > w.now + 1s);
  w.finish();
}

TEST_CASE("watchdog: releasing and taking a lock sets no timer") {
  world w;
  for (int i = 0; i < 3; ++i) {
    task& one = granted(w, w.acquire(1));
    w.await(w.release(one));
  }
  instant const first = w.machine().wake_at();
  for (int i = 0; i < 50; ++i) {
    w.pass(1ms);
    task& one = granted(w, w.acquire(1));
    w.await(w.release(one));
    CHECK(w.machine().wake_at() == first);
  }
  w.finish();
}

TEST_CASE("watchdog: holds taken at different moments wake their client no more often than renewals are due") {
  world w;
  w.watch_holds = w.keeps_history = false;
  for (std::size_t i = 0; i < 2'000; ++i) {
    granted(w, w.acquire(1, {.name = "n" + std::to_string(i)}));
    w.pass(5ms);
  }
  w.pass(30s);
  int wakes = 0;
  for (instant const end = w.now + std::chrono::seconds(30); w.now < end && w.wait_for_next(); ++wakes) w.run();
  CHECK(w.snapshot().renewals >= 6'000);
  CHECK(w.snapshot().lost == 0);
  CHECK(wakes <= 100);
  for (auto const& one : w.tasks()) w.drop(*one);
  w.finish();
}

TEST_CASE("watchdog: a hundred thousand holds are renewed in batches, and nobody starves meanwhile") {
  constexpr std::size_t holds = 100'000 / slowness;  // fewer under a sanitizer
  world w;
  w.watch_holds = w.keeps_history = false;
  w.most_steps = 1'000'000;
  std::vector<task*> all;
  for (std::size_t i = 0; i < holds; ++i) all.push_back(&w.acquire(1, {.name = "n" + std::to_string(i)}));
  w.run();
  REQUIRE(w.snapshot().held == holds);
  w.server.log.clear();
  w.pass(10s);  // the first renewals begin
  std::size_t const begun = w.server.ran("EVALSHA renew");
  CHECK(begun <= 4);  // of one turn
  task& late = w.run(w.acquire(2));
  CHECK(late.granted());
  CHECK(w.server.ran("EVALSHA renew") == begun);
  w.pass(2s);
  CHECK(w.snapshot().renewals == holds);
  CHECK(w.server.ran("EVALSHA renew") == holds / 100);
  instant earliest = never;
  for (task* one : all) earliest = std::min(earliest, one->shown.until());
  CHECK(earliest >= w.now + 28s);
  w.pass(20s);
  CHECK(w.snapshot().renewals >= 2 * holds);
  CHECK(w.snapshot().lost == 0);
  w.close().run();
  for (task* one : all) w.drop(*one);
  w.drop(late).run();
  CHECK(w.machine().closed());
  CHECK(w.machine().quiet());
  CHECK(w.server.all().empty());
  CHECK(w.snapshot().held == 0);
}

TEST_CASE("watchdog: after a reconnect all holds are renewed before anything else is sent") {
  world w;
  std::vector<task*> held;
  for (int i = 0; i < 1'000; ++i) held.push_back(&w.acquire(1, {.name = "k" + std::to_string(i)}));
  w.run();
  task& dropped = granted(w, w.acquire(2, {.name = "dropped"}));
  task* asked = nullptr;
  w.lose(role::shared, fate::gone);
  w.server.log.clear();
  w.drop(dropped);
  asked = &w.acquire(3, {.name = "new", .direct = true});
  w.await(*asked);
  CHECK(asked->granted());
  auto const first_of = [&](std::string_view start) {
    auto const& log = w.server.log;
    return std::find_if(log.begin(), log.end(), [&](auto const& line) { return line.starts_with(start); }) -
           log.begin();
  };
  CHECK(w.server.ran("EVALSHA renew") == 10);
  auto const before = static_cast<std::size_t>(std::min(first_of("EVALSHA acquire"), first_of("EVALSHA release")));
  std::size_t renewals = 0;
  for (std::size_t i = 0; i < before; ++i) renewals += w.server.log[i].starts_with("EVALSHA renew");
  CHECK(renewals == 10);
  w.run();
  CHECK(w.snapshot().renewals == 1'000);
  w.finish();
}

TEST_CASE("watchdog: a server that comes back empty is noticed at once, also while it still loads") {
  world w;
  w.watch_holds = false;
  task& a = granted(w, w.acquire(1));
  w.pass(1s);
  w.server.refuse("EVALSHA renew", "LOADING Redis is loading the dataset in memory", 3);
  w.server.restart(false);
  instant const began = w.now;
  w.until([&] { return a.losses > 0; });
  CHECK(a.why_lost == errc::lease_lost);
  CHECK(w.now - began < 1s);
  w.drop(a);
  w.finish();
}

TEST_CASE("watchdog: renewals after a reconnect go behind the KILL, and do not wait for its answer") {
  world w;
  task& a = granted(w, w.acquire(1));
  task& b = granted(w, w.acquire(2, {.name = "other"}));
  task& ended = *leave_unanswered(w, role::shared, [&] { return &w.release(b); });
  w.server.refuse("CLIENT KILL", "BUSY a script is running", 1);
  w.server.log.clear();
  w.until([&] { return w.snapshot().renewals == 1; });
  CHECK_FALSE(ended.done());
  CHECK(w.server.ran("CLIENT KILL") == 1);
  CHECK(w.server.ran("EVALSHA release") == 0);
  w.await(ended);
  CHECK(a.losses == 0);
  w.finish();
}
