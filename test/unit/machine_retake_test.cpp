#include <support/catch.hpp>
#include <support/unit/made_kind.hpp>
#include <support/unit/stories.hpp>
#include <support/unit/sweep.hpp>
#include <wire/kinds.hpp>

using namespace latchkey;
using namespace latchkey::test;
using namespace std::chrono_literals;

// A client that drops what it has and takes it again before the release has left, over and over.

namespace {

made_kind const& without_hand_off() {
  static made_kind const the_one({.name = "plain", .hand_off = false});
  return the_one;
}

made_kind const& with_hand_off() {
  static made_kind const the_one({.name = "handed"});
  return the_one;
}

// How often the first client takes it until the waiter of the second one has it; at most 200.
int turns_until_passed(world& w, task*& held, task const& waiter, how const& options, bool by_others) {
  int turns = 0;
  std::uint64_t owner = 1;
  while (!waiter.done() && turns < 200) {
    w.drop(*held);
    held = &w.acquire(by_others ? 100 + ++owner : owner, options);
    while (!held->done() && !waiter.done() && w.step()) continue;
    turns += held->done();
    if (!held->done()) break;
  }
  w.run();
  return turns;
}

}  // namespace

TEST_CASE("a lock that is dropped and taken again before its release has left is passed on at the end of a streak") {
  for (bool const by_others : {false, true})
    for (auto const* which : {&with_hand_off(), &without_hand_off()})
      for (std::uint64_t seed = 0; seed <= 10; ++seed) {
        CAPTURE(by_others, which->rules().name, seed);
        world w(streak_of(5), 2);
        how const ours{.which = which};
        task* held = &w.acquire(1, ours);
        w.await(*held);
        task& waiter = w.acquire(2, {.client = 1, .which = which});
        w.pass(1s);
        w.any_order = seed;  // 0: the release and what follows it arrive together
        CHECK(turns_until_passed(w, held, waiter, ours, by_others) <= 60);
        CHECK(w.server.ran("(publish)") >= 1);
        CHECK(waiter.granted());
        w.finish();
      }
}

TEST_CASE("a streak of retakes also ends by time") {
  world w(streak_of(1'000'000, 10ms));
  task* held = &granted(w, w.acquire(1));
  for (std::size_t const published : {0u, 0u, 1u}) {
    w.drop(*held);
    held = &granted(w, w.acquire(1));
    CHECK(w.server.ran("(publish)") == published);
    w.pass(6ms);
  }
  w.finish();
}

TEST_CASE("who drops a fair lock and takes it again at once stands behind those who wait") {
  world w({}, 2);
  task& held = granted(w, w.acquire(1, {.which = &detail::fair_kind()}));
  task& waiter = w.acquire(2, {.client = 1, .which = &detail::fair_kind()});
  w.run();
  w.drop(held);
  task& again = w.acquire(1, {.which = &detail::fair_kind()});
  w.run();
  CHECK(waiter.granted());
  CHECK_FALSE(again.done());
  w.release(waiter);
  w.await(again);
  CHECK(again.granted());
  w.finish();
}

TEST_CASE("a release whose place was taken by who cannot try at once is not forgotten when he leaves") {
  world w(streak_of(1), 2);
  how const read{.which = &detail::read_write_kind(), .mode = 0};
  task& a = granted(w, w.acquire(1, read));
  task& b = granted(w, w.acquire(2, read));
  w.run();
  w.drop(a);
  w.release(b);
  w.cancel(w.acquire(1, read));
  task& writer = w.acquire(3, {.client = 1, .which = &detail::read_write_kind(), .mode = 1});
  w.run();
  CHECK(writer.granted());
  w.finish();
}
