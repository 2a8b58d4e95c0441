#include <support/catch.hpp>
#include <support/unit/stories.hpp>
#include <wire/scripts.hpp>

using namespace latchkey;
using namespace latchkey::test;
using namespace std::chrono_literals;

// Turns that do not pay yet, or no longer: the server is asked, and hands the lock on. docs/safety.md, "Hand-offs
// beside turns".

TEST_CASE("turns: what is done now and then goes by the server, which shows it at once") {
  config settings = with_turns();
  settings.local_handoff.warm_up = 3;
  world w(settings);
  auto const shown = [&] { return w.server.count("k", w.field(1)); };
  auto const enter = [&] { return &granted(w, w.acquire(1)); };
  enter();
  task* inner = enter();
  CHECK(shown() == 2);
  w.await(w.release(*inner));
  CHECK(shown() == 1);
  inner = enter();
  CHECK(shown() == 2);
  w.run(w.release(*inner));  // the fourth in a row
  CHECK(shown() == 2);
  w.pass(99ms);
  inner = enter();
  CHECK(shown() == 1);
  w.pass(101ms);
  CHECK(shown() == 2);
  enter();
  CHECK(shown() == 3);
  w.finish();
}

TEST_CASE("turns: the first of those who wait have it from the server") {
  for (how const& kind : kinds_with_turns()) {
    INFO(kind.which->rules().name);
    config settings = with_turns();
    settings.local_handoff.warm_up = 2;
    world w(settings);
    std::vector<task*> all{&granted(w, w.acquire(1, kind))};
    for (std::uint64_t owner = 2; owner <= 4; ++owner) all.push_back(&w.acquire(owner, kind));
    w.run();
    for (std::size_t i = 0; i + 1 < all.size(); ++i) {
      auto const before = asked(w);
      w.drop(*all[i]);
      w.await(*all[i + 1]);
      REQUIRE(all[i + 1]->granted());
      CHECK(asked(w) - before == (i < 2 ? 1 : 0));  // one request for both, which the server shows
      CHECK(w.snapshot().handed_off == i + 1);
    }
    w.finish();
    CHECK(w.server.all().empty());
  }
}

TEST_CASE("turns: what is no longer usual is handed to nobody in whose field it is") {
  for (bool const waits_first : {true, false}) {
    config settings = with_turns();
    settings.local_handoff = {.max_time = 10min, .warm_up = 1};
    world w(settings);
    task& a = granted(w, w.acquire(1));
    task& b = w.run(w.acquire(2));
    w.drop(a);
    w.await(b);
    task& c = w.run(w.acquire(3));
    w.drop(b);
    REQUIRE(c.granted());
    CHECK(w.server.has("k", w.field(2)));  // the third one's turn
    task& again = w.run(w.acquire(waits_first ? 2 : 4));
    w.pass(101ms);
    auto const before = asked(w);
    w.run(w.release(c));
    w.await(again);
    CHECK(asked(w) - before == (waits_first ? 2 : 1));
    CHECK(w.server.count("k", w.field(waits_first ? 2 : 4)) == 1);
    w.finish();
    CHECK(w.server.all().empty());
  }
}

TEST_CASE("turns: a hand-off that a sick server refuses goes again, as a release does") {
  constexpr std::string_view no = "'MISCONF Redis is configured to save RDB snapshots, but it is unable to persist'";
  for (bool const turns : {true, false}) {
    config settings = with_turns();
    settings.local_turns = turns;
    settings.local_handoff.warm_up = 100;
    world w(settings);
    warm_up(w);
    task& a = granted(w, w.acquire(1));
    task& b = w.run(w.acquire(2));
    w.server.answer_with(detail::reentrant_hand_off(), "return {{" + std::string(no) + ", " + std::string(no) + "}}");
    w.release(a);
    w.pass(2s);
    CHECK_FALSE(b.done());
    w.server.answer_with(detail::reentrant_hand_off(), "");
    w.pass(3s);
    CHECK(b.granted());
    CHECK(w.server.count("k", w.field(2)) == 1);
    CHECK_FALSE(w.server.has("k", w.field(1)));
    w.finish();
  }
}

TEST_CASE("turns: a spin lock is left to others for as long as a streak of hand-offs was") {
  how const spin{.which = &detail::spin_kind()};
  for (bool const turns : {true, false}) {
    config settings = with_turns();
    settings.local_turns = turns;
    settings.local_handoff = {.max_streak = 1'000, .max_time = 30ms, .warm_up = 100};
    world w(settings);
    std::vector<task*> all{&granted(w, w.acquire(1, spin))};
    for (std::uint64_t owner = 2; owner <= 8; ++owner) all.push_back(&w.acquire(owner, spin));
    w.run();
    std::size_t i = 0;
    for (;; ++i) {
      w.pass(10ms);
      w.drop(*all[i]).run();
      if (!all[i + 1]->granted()) break;
    }
    REQUIRE(i > 1);
    detail::instant const left = w.now;
    w.await(*all[i + 1]);
    CHECK(w.now - left >= 29ms);
    w.finish();
  }
}

TEST_CASE("turns: a release that was sent is made no hand-off") {
  config settings = with_turns();
  settings.local_handoff = {.max_time = 10min, .warm_up = 100};
  world w(settings);
  warm_up(w);
  task& a = granted(w, w.acquire(1));
  leave_unread(w, role::shared, [&] { w.drop(a); });
  w.await(w.acquire(2));
  CHECK(w.snapshot().handed_off == 0);
  w.finish();
}

TEST_CASE("turns: a force-unlock of the same client is asked after at once, however young the hold is") {
  world w(with_turns());
  granted(w, w.acquire(1));
  w.watch_holds = false;
  w.pass(1ms);
  auto const before = asked(w);
  auto const since = w.now;
  task& forces = w.run(w.force_unlock());
  CHECK(forces.done());
  CHECK(w.now == since);
  CHECK(asked(w) == before + 2);
}

// The message of the release that let it in comes on another connection, and often later than the grant.
TEST_CASE("turns: what is heard behind a grant is asked after if the hold lasts, or once somebody waits") {
  world w(with_turns());
  task* held = &granted(w, w.acquire(1));
  w.cancel(w.run(w.acquire(2))).run();  // the subscription lingers
  auto const hear = [&] { w.server.publish("redisson_lock__channel:{k}", "0"), w.run(); };
  auto const take = [&] {
    w.await(w.release(*held));
    held = &granted(w, w.acquire(1));
  };
  take();
  auto const before = asked(w);
  hear();
  w.pass(4ms);
  CHECK(asked(w) == before);
  take();
  CHECK(asked(w) == before + 2);
  SECTION("it lasts") {
    hear();
    w.pass(5ms);
    CHECK(asked(w) == before + 3);
    hear();  // it is old enough
    CHECK(asked(w) == before + 4);
  }
  SECTION("somebody waits") {
    hear();
    task& next = w.run(w.acquire(2));
    CHECK(asked(w) == before + 3);
    w.drop(*held);
    CHECK(next.granted());  // the answer has said that it is there
    held = &next;
  }
  SECTION("it was taken away") {
    w.watch_holds = false;
    w.server.remove("k");
    hear();
    CHECK(held->losses == 0);
    w.pass(5ms);
    CHECK(held->losses == 1);
  }
  w.finish();
}
