#include <support/catch.hpp>
#include <support/unit/stories.hpp>
#include <support/unit/sweep.hpp>
#include <wire/kinds.hpp>

#include <vector>

using namespace latchkey;
using namespace latchkey::test;
using namespace std::chrono_literals;

// The machines with the rules of the reentrant lock's relatives.

namespace {

struct relative {
  char const* name;
  detail::kind const& (*kind)();
  bool once;
};

relative any_relative() {
  return GENERATE(values<relative>({{"non-reentrant", detail::non_reentrant_kind, true},
                                    {"spin", detail::spin_kind, false},
                                    {"fenced", []() -> detail::kind const& { return detail::fenced_kind(); }, false},
                                    {"plain", detail::plain_kind, true}}));
}

// In the order of their grants.
void expect_rising(world& w, std::vector<task const*> const& holders) {
  std::uint64_t last = 0;
  for (task const* one : holders) {
    if (!one->granted()) continue;
    if (one->token <= last) w.fail("the token of " + one->label + " is not above those of earlier holders");
    last = one->token;
  }
}

}  // namespace

TEST_CASE("sweep: family: a holder, a waiter, and one whose wait ends") {
  relative const one = any_relative();
  INFO(one.name);
  detail::kind const& which = one.kind();
  sweep({.play = [&](world& w) {
    task& a = w.await(w.acquire(1, {.which = &which}));
    task& again = w.await(w.acquire(1, {.which = &which}));
    if (one.once)
      w.expect(again.error == errc::already_held, "taken once only");
    else
      w.expect(again.granted(), "taken again");
    task& b = w.acquire(2, {.direct = true, .which = &which});
    task& c = w.await(w.acquire(3, {.wait = 300ms, .which = &which}));
    for (task* held : {&again, &a})
      if (held->granted()) w.release(*held);
    w.await(b);
    w.expect(b.granted() && !c.granted(), "the one who still waits");
    if (b.granted()) w.drop(b);
    task& d = w.await(w.acquire(4, {.lease = 5s, .which = &which}));
    w.expect(d.granted(), "and then the last");
    if (which.rules().tokens) expect_rising(w, {&a, &again, &b, &d});
  }});
}

TEST_CASE("sweep: family: two clients") {
  relative const one = any_relative();
  INFO(one.name);
  detail::kind const& which = one.kind();
  sweep({.play =
             [&](world& w) {
               task& a = w.await(w.acquire(1, {.which = &which}));
               task& b = w.run(w.acquire(2, {.client = 1, .which = &which}));
               if (a.granted()) w.drop(a);
               w.await(b);
               w.expect(b.granted(), "the other client's turn");
               if (which.rules().tokens) expect_rising(w, {&a, &b});
             },
         .clients = 2});
}

TEST_CASE("non-reentrant lock: a second take by the owner sends nothing, however it comes about") {
  world w;
  detail::kind const& which = detail::non_reentrant_kind();
  task& tries = w.acquire(1, {.which = &which});
  task& meanwhile = w.acquire(1, {.which = &which});
  CHECK_FALSE(meanwhile.done());  // nobody knows yet
  granted(w, tries);
  CHECK(meanwhile.error == errc::already_held);
  task& later = w.once(1, {.which = &which});
  CHECK(later.error == errc::already_held);
  w.run();
  CHECK(w.server.ran("EVALSHA acquire") == 1);
  w.release(tries);
  task& behind = w.acquire(1, {.which = &which});  // behind the release
  granted(w, behind);
  w.finish();
}

TEST_CASE("non-reentrant lock: a repeated acquire that finds its own field is one hold") {
  world w;
  detail::kind const& which = detail::non_reentrant_kind();
  granted(w, w.acquire(9, {.name = "warm"}));
  task& one = *leave_unanswered(w, role::shared, [&] { return &w.acquire(1, {.which = &which}); });
  granted(w, one);
  CHECK(w.server.count("k", w.field(1)) == 1);
  w.finish();
}

TEST_CASE("fenced lock: a repeated grant has a token of its own, above those of all earlier holders") {
  world w;
  detail::kind const& which = detail::fenced_kind();
  task& before = granted(w, w.acquire(9, {.which = &which}));
  w.await(w.release(before));
  task& one = *leave_unanswered(w, role::shared, [&] { return &w.acquire(1, {.which = &which}); });
  w.await(one);
  CHECK(before.token == 1);
  CHECK(one.token == 3);
  task& next = w.run(w.acquire(2, {.which = &which}));
  w.release(one);
  w.await(next);
  CHECK(next.token == 4);  // by a hand-off
  CHECK(w.snapshot().handed_off == 1);
  w.finish();
}

TEST_CASE("spin lock: waiters of one client are one who looks, and a release needs no pause") {
  world w;
  how const spin{.which = &detail::spin_kind()};
  task& a = granted(w, w.acquire(1, spin));
  task& b = w.acquire(2, spin);
  task& c = w.acquire(3, spin);
  w.pass(10s);
  std::size_t const tries = w.server.ran("EVALSHA acquire");
  CHECK(tries >= 10'000 / 129);
  CHECK(tries <= 10'000 / 64 + 10);
  CHECK(w.server.ran("SUBSCRIBE") == 0);
  w.run(w.release(a));
  CHECK(b.granted());
  w.run(w.release(b));
  CHECK(c.granted());
  CHECK(w.server.ran("EVALSHA spin_hand_off") == 2);
  w.finish();
}

TEST_CASE("spin lock: callers who end one after the other look no more often than one who stays") {
  world w;
  w.server.stranger_takes("k", "another library", 600'000);
  std::vector<task*> all;
  for (unsigned i = 1; i <= 400; ++i) all.push_back(&w.acquire(i, {.wait = i * 25ms, .which = &detail::spin_kind()}));
  w.pass(11s);
  for (task* const one : all) {
    CHECK(one->done());
    CHECK_FALSE(one->granted());
    CHECK_FALSE(one->error);
  }
  std::size_t const tries = w.server.ran("EVALSHA acquire");
  CHECK(tries >= 10'000 / 129);
  CHECK(tries <= 10'000 / 64 + 10);
  w.finish();
}

namespace {

// So many hand-offs, each to somebody who has come while the holder before worked for so long. Gives the last one.
task* streak(world& w, task* held, int hand_offs, milliseconds work, how const& by) {
  for (int i = 0; i < hand_offs; ++i) {
    task& waits = w.acquire(held->owner + 1, by);
    w.pass(work);
    w.run(w.release(*held));
    held = &waits;
  }
  return held;
}

// Owner 1 gives it back after a millisecond and wants it again, until it is left to others. Gives the call that waits.
task* taken_again_until_busy(world& w, task* held, how const& by) {
  for (int turns = 0; held->granted() && turns < 100; ++turns) {
    w.pass(1ms);
    w.drop(*held);
    held = &w.acquire(1, by);
    w.run();
  }
  return held;
}

}  // namespace

TEST_CASE("spin lock: after a streak it stays free for as long as that was, so that others find it") {
  world w(streak_of(4, 10ms));
  how const spin{.which = &detail::spin_kind()};
  task* held = &granted(w, w.acquire(1, spin));
  held = streak(w, held, 4, 2ms, spin);
  CHECK(held->granted());
  held = streak(w, held, 1, 2ms, spin);
  CHECK_FALSE(held->granted());
  CHECK(w.server.ran("EVALSHA spin_hand_off") == 4);
  w.pass(6ms);
  CHECK_FALSE(held->granted());
  w.pass(4ms);
  CHECK(held->granted());
  w.finish();
}

TEST_CASE("spin lock: a release that nobody is told of lets the next one of the client look soon") {
  world w({.local_handoff = {.max_streak = 0}});
  how const spin{.which = &detail::spin_kind()};
  for (int i = 0; i < 8; ++i) {
    task& a = granted(w, w.acquire(1, spin));
    task& b = w.acquire(2, spin);
    w.pass(1s + i * 17ms);  // by now it looks every 64 to 128 ms
    w.release(a);
    w.pass(10ms);
    CHECK(b.granted());
    w.await(b);
    w.run(w.release(b));
  }
  w.finish();
}

TEST_CASE("spin lock: contended, two calls a turn within a client, and one try more for each pause elsewhere") {
  world w(seen_by_the_server(), 2);
  how const spin{.which = &detail::spin_kind()}, elsewhere{.client = 1, .which = &detail::spin_kind()};
  task& a = granted(w, w.acquire(1, spin));
  task& b = w.run(w.acquire(2, elsewhere));
  CHECK(w.server.ran("EVALSHA") == 2);
  w.run(w.release(a));
  CHECK_FALSE(b.done());
  w.pass(3ms);
  CHECK(b.granted());
  CHECK(w.server.ran("EVALSHA") == 4);
  w.finish();
}

TEST_CASE("plain lock: a message wakes a waiter at once, and without one he looks now and then") {
  world w(seen_by_the_server(), 2);
  how const plain{.which = &detail::plain_kind()}, elsewhere{.client = 1, .which = &detail::plain_kind()};
  task& a = granted(w, w.acquire(1, plain));
  task& b = w.run(w.acquire(2, elsewhere));
  CHECK(w.server.ran("EVALSHA plain_acquire") == 3);  // b's second is the one after the confirmation
  w.pass(8s);
  std::size_t const tries = w.server.ran("EVALSHA plain_acquire");
  CHECK(tries >= 8'000 / 257);
  CHECK(tries <= 8'000 / 128 + 10);
  w.run(w.release(a));
  CHECK(b.granted());
  w.run(w.release(b));
  w.server.ask({"SET", "k", "another library", "PX", "600000"});
  task& c = w.acquire(3, plain);
  w.pass(5s);
  w.server.remove("k");
  w.pass(258ms);
  CHECK(c.granted());
  w.finish();
}

TEST_CASE("spin lock: however long a streak may be, it is left free for no longer than others pause") {
  world w(streak_of(4, 1h));
  how const spin{.wait = 60s, .which = &detail::spin_kind()};
  task* held = &granted(w, w.acquire(1, spin));
  bool const brief = GENERATE(false, true);
  held = streak(w, held, 4, 5s, spin);
  how last = spin;
  if (brief) last.wait = 5'060ms;
  held = streak(w, held, 1, 5s, last);
  CHECK_FALSE(held->granted());
  w.pass(brief ? 10ms : 128ms);  // whose wait ends before that looks before
  CHECK(held->granted());
  w.finish();
}

TEST_CASE("spin lock: who has it over and over in one client leaves it to others at the end of a streak") {
  world w(seen_by_the_server(), 2);
  how const spin{.which = &detail::spin_kind()};
  task* held = &granted(w, w.acquire(1, spin));
  task& other = w.run(w.acquire(9, {.client = 1, .which = &detail::spin_kind()}));
  held = taken_again_until_busy(w, held, spin);
  w.pass(9ms);
  REQUIRE(other.granted());
  w.release(other);
  w.await(*held);
  w.release(*held);
  w.finish();
}

TEST_CASE("spin lock: who cannot wait until others have had their time looks before his wait is over") {
  world w;
  how const spin{.which = &detail::spin_kind()};
  task* held = &granted(w, w.acquire(1, spin));
  for (int turns = 0; turns < 5; ++turns) {
    w.pass(4ms);
    w.drop(*held);
    held = &w.acquire(1, {.wait = 2ms, .which = &detail::spin_kind()});
    w.run();
    CHECK(held->granted());
  }
  w.finish();
}

TEST_CASE("spin lock: who comes while it is left to others, and has no time, ends that") {
  world w;
  how const spin{.which = &detail::spin_kind()};
  task* held = &granted(w, w.acquire(1, spin));
  held = taken_again_until_busy(w, held, spin);
  REQUIRE_FALSE(held->granted());
  task& brief = w.acquire(2, {.wait = 3ms, .which = &detail::spin_kind()});
  task* tries = nullptr;
  SECTION("a wait that is short") {}
  SECTION("no wait at all") { tries = &w.once(3, spin); }
  w.run();
  CHECK(held->granted());
  if (tries) CHECK(tries->busy());
  w.pass(3ms);
  CHECK(brief.busy());
  w.finish();
}

TEST_CASE("spin lock: a try without a wait that stands behind a waiter is not kept for others") {
  world w(streak_of(3, 10s));
  how const spin{.which = &detail::spin_kind()};
  task* held = &granted(w, w.acquire(1, spin));
  held = streak(w, held, 3, 60ms, spin);
  REQUIRE(held->granted());
  w.drop(*held);  // it is really released, and nobody has been told yet that it is busy
  task& waits = w.acquire(7, spin);
  task& tries = w.run(w.once(8, spin));
  w.pass(5ms);
  CHECK(tries.done());
  CHECK(waits.granted());
  w.finish();
}
