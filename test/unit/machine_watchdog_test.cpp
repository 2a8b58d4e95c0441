#include <support/catch.hpp>
#include <support/unit/stories.hpp>

#include <algorithm>

using namespace latchkey;
using namespace latchkey::test;
using namespace std::chrono_literals;

TEST_CASE("watchdog: what can be renewed together is") {
  config settings;
  settings.lock_watchdog_batch_size = 10;
  world w(settings);
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
  config settings;
  settings.on_event = [](event const&) {};
  world w(settings);
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

TEST_CASE("watchdog: no link for a while") {
  world w;
  task& a = granted(w, w.acquire(1));
  task& b = granted(w, w.acquire(2, {.name = "other", .lease = 10s}));
  w.unreachable = "no route";
  w.lose(role::shared, fate::gone);
  w.pass(25s);
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
  w.server.store.remove("k");
  w.pass(10s);
  CHECK(a.losses == 1);
  CHECK(b.losses == 0);
  w.drop(a);
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

TEST_CASE("watchdog: a hundred thousand holds are renewed in batches, and nobody starves meanwhile") {
  constexpr std::size_t holds = 100'000;
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
  task& late = w.acquire(2);
  w.run();
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
  w.close();
  w.run();
  CHECK(w.machine().quiet());
  CHECK(w.server.store.all().empty());
  CHECK(w.snapshot().held == 0);
}
