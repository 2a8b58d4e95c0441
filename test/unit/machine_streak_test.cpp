#include <support/catch.hpp>
#include <support/unit/stories.hpp>
#include <support/unit/sweep.hpp>

using namespace latchkey;
using namespace latchkey::test;
using namespace std::chrono_literals;

namespace {

// Everybody wants it at once and keeps it for no time.
void all_take_turns(world& w, std::uint64_t callers) {
  std::vector<task*> all;
  for (std::uint64_t i = 1; i <= callers; ++i) all.push_back(&w.acquire(i));
  for (task* one : all) {
    w.await(*one);
    if (one->granted()) w.release(*one);
  }
  w.run();
}

}  // namespace

TEST_CASE("sweep: a streak of hand-offs ends with a real release") {
  sweep({.play =
             [](world& w) {
               all_take_turns(w, 6);
               w.expect(w.snapshot().acquired == 6, "all had it");
               w.expect(w.snapshot().handed_off <= 4 && w.server.ran("(publish)") >= 2, "others had their chance");
             },
         .settings = [] { return streak_of(2, 1s); }});
}

TEST_CASE("a streak also ends by time") {
  world w(streak_of(1'000, 10ms));
  task& first = w.acquire(1);
  w.await(first);
  std::vector<task*> all;
  for (std::uint64_t i = 2; i <= 6; ++i) all.push_back(&w.acquire(i));
  w.run();
  w.release(first);
  for (task* one : all) {
    w.await(*one);
    REQUIRE(one->granted());
    w.pass(6ms);
    w.release(*one);
  }
  w.run();
  CHECK(w.server.ran("(publish)") == 2);
  CHECK(w.snapshot().handed_off == 4);
  w.finish();
}

TEST_CASE("without hand-off every release is published") {
  config settings;
  settings.local_handoff.max_streak = 0;
  world w(settings);
  all_take_turns(w, 5);
  CHECK(w.snapshot().acquired == 5);
  CHECK(w.snapshot().handed_off == 0);
  CHECK(w.server.ran("(publish)") == 5);
  w.finish();
}

TEST_CASE("a hundred waiters cost one subscription, and about one command each") {
  world w;
  task& first = w.acquire(1'000);
  w.await(first);
  std::vector<task*> all;
  for (std::uint64_t i = 1; i <= 100; ++i) all.push_back(&w.acquire(i, {.direct = i % 2 == 0}));
  w.run();
  CHECK(w.server.subscriptions() == 1);
  std::size_t const before = w.server.ran("EVALSHA");
  w.pass(5s);
  CHECK(w.server.ran("EVALSHA") == before);
  w.release(first);
  for (task* one : all) {
    w.await(*one);
    REQUIRE(one->granted());
    w.run();  // the next one does not ask meanwhile
    w.release(*one);
  }
  w.run();
  CHECK(w.server.ran("EVALSHA") - before <= 110);
  CHECK(w.server.ran("SUBSCRIBE") == 1);
  w.finish();
}

TEST_CASE("a streak has ended, also when its release did not run the first time") {
  world w(streak_of(1, 1s));
  task& a = granted(w, w.acquire(1));
  task& b = w.acquire(2);
  w.run();
  w.release(a);
  w.await(b);
  CHECK(w.snapshot().handed_off == 1);
  task& c = w.acquire(3);
  w.run();
  w.server.flush_scripts();
  w.release(b);
  w.await(c);
  CHECK(w.snapshot().handed_off == 1);
  CHECK(w.server.ran("(publish)") == 1);
  w.finish();
}
