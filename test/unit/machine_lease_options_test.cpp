// What acquire_options ask of a lease beside its length.
#include <support/catch.hpp>
#include <support/unit/stories.hpp>
#include <support/unit/sweep.hpp>

#include <algorithm>

using namespace latchkey;
using namespace latchkey::test;
using namespace std::chrono_literals;

TEST_CASE("a lock delay is added on the server and not trusted here", "[unit][machine]") {
  world w;
  task& fixed = w.await(w.acquire(1, {.lease = 10s, .lock_delay = 5s}));
  CHECK(fixed.shown.until() <= w.now + 10s);
  CHECK(w.server.ttl("k") > 14'000);
  w.pass(10s + 1ms);
  CHECK(fixed.losses == 1);
  CHECK(w.server.has("k", w.field(1)));
  task& other = w.run(w.acquire(2));
  CHECK_FALSE(other.done());
  w.pass(3s);
  CHECK_FALSE(other.done());
  granted(w, other);
  CHECK(w.now >= fixed.done_at + 14'999ms);
  w.await(w.release(other));
  w.finish();
}

TEST_CASE("renewals, extensions and max_hold carry the lock delay, a release ends it", "[unit][machine]") {
  world w;
  task& renewed = w.await(w.acquire(1, {.lock_delay = 5s}));
  w.pass(45s);
  CHECK(renewed.losses == 0);
  CHECK(w.server.ttl("k") > 25'000 - 1);
  CHECK(w.server.ttl("k") - std::chrono::floor<milliseconds>(renewed.shown.until() - w.now).count() >= 4'999);
  w.await(w.extend(renewed, 8s));
  CHECK(w.server.ttl("k") > 12'900);
  CHECK(renewed.shown.until() <= w.now + 8s);
  w.await(w.release(renewed));
  CHECK_FALSE(w.server.has("k", w.field(1)));
  task& bounded = w.await(w.acquire(2, {.max_hold = 40s, .lock_delay = 5s}));
  w.pass(40s + 1ms);
  CHECK(bounded.losses == 1);
  CHECK(w.server.ttl("k") > 4'900);
  w.drop(bounded).run();
  CHECK(w.server.has("k", w.field(2)));
  w.pass(6s);
  CHECK_FALSE(w.server.has("k", w.field(2)));
  w.finish();
}

TEST_CASE("the owner of a lost hold comes back within its lock delay", "[unit][machine]") {
  world w;
  task& first = w.await(w.acquire(1, {.lease = 1s, .lock_delay = 20s}));
  w.pass(2s);
  CHECK(first.losses == 1);
  task& again = granted(w, w.acquire(1, {.lease = 1s}));
  CHECK(w.server.count("k", w.field(1)) == 1);
  w.await(w.release(again));
  CHECK_FALSE(w.server.has("k", w.field(1)));
  w.drop(first);
  w.finish();
}

TEST_CASE("an extension that leaves after its hold has ended leaves the lock delay alone", "[unit][machine]") {
  bool const sent = GENERATE(false, true);
  world w(patient());
  task& held = w.await(w.acquire(1, {.lease = 1s, .lock_delay = 20s}));
  w.pass(900ms);
  w.unreachable = "no route";
  task* longer = nullptr;
  if (sent) {
    leave_unanswered(w, role::shared, [&] { longer = &w.extend(held, 30s); });
  } else {
    w.lose(role::shared, fate::gone).run();
    longer = &w.extend(held, 30s);
  }
  w.pass(200ms);
  REQUIRE(held.losses == 1);
  w.unreachable.clear();
  w.await(*longer);
  w.pass(1s);
  CHECK_FALSE(longer->yes);
  CHECK(w.server.ttl("k") > 15'000);
  w.drop(held);
  w.pass(50s);
  w.finish();
}

TEST_CASE("a re-entry that was sent before its hold ended leaves the lock delay alone", "[unit][machine]") {
  enum class answer { never, refused, granted, given_up };
  auto const how = GENERATE(answer::never, answer::refused, answer::granted, answer::given_up);
  INFO(static_cast<int>(how));
  world w(patient(), 2);
  task& held = w.await(w.acquire(1, {.lease = 1s, .lock_delay = 20s}));
  w.pass(900ms);
  task* again = nullptr;
  if (how == answer::granted) {
    w.mute(role::shared);
    again = &w.run(w.acquire(1, {.lease = 2s}));
    w.pass(200ms);
    w.mute(role::shared, false);
  } else if (how == answer::refused) {
    w.deafen(role::shared);
    again = &w.run(w.acquire(1, {.lease = 2s}));
    w.pass(200ms);
    w.server.refuse("EVALSHA", "NOREPLICAS Not enough good replicas to write.");
    w.deafen(role::shared, false);
  } else {
    w.unreachable = "no route";
    leave_unanswered(w, role::shared, [&] { again = &w.acquire(1, {.lease = 2s}); });
    w.pass(200ms);
    if (how == answer::given_up) w.cancel(*again);
    w.unreachable.clear();
  }
  REQUIRE(held.losses == 1);
  task& other = w.acquire(2, {.lease = 1s, .client = 1});
  w.await(*again);
  CHECK(again->granted() == (how != answer::given_up));
  CHECK_FALSE(other.done());
  if (how == answer::given_up) {
    w.pass(5s);
    CHECK_FALSE(other.done());
  }
  w.drop(*again);
  w.await(other);
  w.release(other);
  w.drop(held);
  w.finish();
}

TEST_CASE("turns: a hold with a lock delay begins in the field of its own owner", "[unit][machine]") {
  world w(with_turns());
  task& b = second_by_turn(w);
  w.drop(b);
  task& delayed = granted(w, w.acquire(2, {.lease = 1s, .lock_delay = 20s}));
  CHECK(w.server.has("k", w.field(2)));
  w.pass(2s);
  REQUIRE(delayed.losses == 1);
  task& early = w.run(w.acquire(1, {.lease = 1s}));
  w.pass(5s);
  CHECK_FALSE(early.done());
  w.await(early);
  w.release(early);
  w.drop(delayed);
  w.finish();
}

TEST_CASE("a hand-off carries the lock delay of who is granted", "[unit][machine]") {
  world w;
  task& first = w.await(w.acquire(1));
  task& next = w.run(w.acquire(2, {.lease = 10s, .lock_delay = 5s}));
  w.release(first);
  w.await(next);
  CHECK(next.shown.until() <= w.now + 10s);
  CHECK(w.server.ttl("k") > 14'000);
  w.await(w.release(next));
  w.finish();
}

TEST_CASE("work without progress is renewed no longer, and the other holds are", "[unit][machine]") {
  world w;
  task& hangs = w.acquire(1, {.progress_within = 25s});
  task& goes_on = w.acquire(2, {.name = "other", .progress_within = 25s});
  task& plain = w.acquire(3, {.name = "third"});
  for (task* const one : {&hangs, &goes_on, &plain}) w.await(*one);
  for (int i = 0; i < 12; ++i) {
    w.pass(10s);
    goes_on.shown.progress(w.now);
    if (i < 1) hangs.shown.progress(w.now);  // 10 s after the grant, and never again
  }
  CHECK(hangs.losses == 1);
  CHECK(goes_on.trusted(w.now));
  CHECK(plain.trusted(w.now));
  auto const told = std::count_if(w.notes.begin(), w.notes.end(), [](auto const& one) {
    return one.type == event_type::warning && one.text.find("no progress") != std::string::npos && one.lock == "k";
  });
  CHECK(told == 1);
  CHECK_FALSE(w.server.has("k", w.field(1)));
  w.drop(hangs);
  w.await(w.release(goes_on));
  w.await(w.release(plain));
  w.finish();
}

TEST_CASE("work that shows progress until late is lost one lease after it stopped", "[unit][machine]") {
  world w;
  task& one = w.await(w.acquire(1, {.progress_within = 1s}));
  for (int i = 0; i < 100; ++i) {
    w.pass(500ms);
    one.shown.progress(w.now);
  }
  CHECK(one.losses == 0);
  w.pass(29s);
  CHECK(one.trusted(w.now) == (one.losses == 0));
  w.pass(12s);
  CHECK(one.losses == 1);
  w.drop(one);
  w.finish();
}
