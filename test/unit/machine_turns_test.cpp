#include <machine/streak.hpp>
#include <support/catch.hpp>

#include <tuple>

namespace machine_turns {

using namespace latchkey;
using namespace latchkey::detail;
using namespace std::chrono_literals;

// How long the callers of one client pass a lock on among themselves, without the machine: docs/safety.md, section 4.

namespace {

constexpr instant start{std::chrono::hours(1)};

}  // namespace

TEST_CASE("streak: it is over after so many turns, or so much time, and begins anew after a release",
          "[unit][machine]") {
  local_handoff_options const limit{.max_streak = 3, .max_time = 10ms};
  streak turns;
  instant now = start;
  CHECK_FALSE(turns.runs());
  for (int i = 0; i < 3; ++i) {
    CHECK(turns.allows(limit, now));
    turns.count(now);
  }
  CHECK(turns.runs());
  CHECK_FALSE(turns.allows(limit, now));
  turns.end();
  CHECK_FALSE(turns.runs());
  CHECK(turns.allows(limit, now));
  turns.count(now);
  CHECK(turns.allows(limit, now + 10ms - 1ns));
  CHECK_FALSE(turns.allows(limit, now + 10ms));
}

TEST_CASE("streak: a release to nobody ends one if it was one, until it turns out not to have run", "[unit][machine]") {
  streak turns;
  turns.end();
  CHECK_FALSE(turns.ended());
  turns.count(start);
  turns.end();
  CHECK(turns.ended());
  turns.go_on();
  CHECK_FALSE(turns.ended());
  turns.end();
  turns.end();
  CHECK_FALSE(turns.ended());
}

TEST_CASE("rotation: who had it lets those go first who have waited for longer", "[unit][machine]") {
  rotation turns;
  CHECK(turns.ahead() == 0);  // it has never had it
  turns.heard();
  CHECK(turns.ahead() == 0);
  turns.had();
  turns.released_to(4, true);
  turns.heard();  // its own release
  CHECK(turns.ahead() == 3);
  CHECK_FALSE(turns.went_on());
  turns.heard();
  CHECK(turns.ahead() == 2);
  CHECK(turns.went_on());
  for (int i = 0; i < 10; ++i) turns.heard();
  CHECK(turns.ahead() == 0);
  turns.had();
  CHECK(turns.ahead() == 4);
  turns.released_to(1, true);  // alone by now
  turns.heard();
  CHECK(turns.ahead() == 0);
  turns.had();
  turns.released_to(1'000, false);
  CHECK(turns.ahead() == 8);  // most of them need not wait
  turns.released_to(4, false);
  CHECK(turns.ahead() == 0);  // they had it once each
}

TEST_CASE("reign: begins with a grant and ends when another has it", "[unit][machine]") {
  reign ours;
  instant const now{1s};
  CHECK(ours.lasts(now) == 0ns);
  ours.had(now);
  ours.had(now + 1ms);
  CHECK(ours.lasts(now + 2ms) == 2ms);
  ours.end();
  CHECK(ours.lasts(now + 2ms) == 0ns);
  ours.had(now + 2ms);
  CHECK(ours.lasts(now + 3ms) == 1ms);
}

TEST_CASE("rotation: others are known of for a while", "[unit][machine]") {
  rotation turns;
  instant const now{1s};
  CHECK(turns.alone(now));
  turns.others_have_it(now);
  CHECK(turns.contended(now + 998ms));
  CHECK_FALSE(turns.alone(now + 998ms));
  CHECK_FALSE(turns.contended(now + 1000ms));
  CHECK(turns.alone(now + 1000ms));
  turns.released_to(2, false);
  CHECK_FALSE(turns.alone(now + 1000ms));
}

TEST_CASE("streak: where none is wanted none begins", "[unit][machine]") {
  local_handoff_options const limit{.max_streak = 0};
  CHECK_FALSE(streak{}.allows(limit, start));
}

TEST_CASE("streak: a release that did not run has not ended it", "[unit][machine]") {
  local_handoff_options const limit{.max_streak = 1};
  streak turns;
  turns.count(start);
  turns.end();
  turns.go_on();
  CHECK_FALSE(turns.allows(limit, start));
  turns.end();
  turns.count(start);
  turns.go_on();  // a new one has begun meanwhile
  turns.end();
  CHECK(turns.allows(limit, start));
}

TEST_CASE("streak: the lock is left to others for as long as it was, up to two limits", "[unit][machine]") {
  local_handoff_options const limit{.max_streak = 4, .max_time = 10ms};
  streak turns;
  turns.end();
  turns.leave(limit, start, 128ms);
  CHECK(turns.left_until() <= start);
  for (auto const& [lasted, most, left] :
       {std::tuple{4ms, 128ms, 4ms}, std::tuple{40ms, 128ms, 10ms}, std::tuple{9ms, 5ms, 5ms}}) {
    turns.count(start);
    turns.end();
    turns.leave(limit, start + lasted, most);
    CHECK(turns.left_until() == start + lasted + left);
    turns.end();
    turns.leave(limit, start + lasted, most);  // a release between takes nothing off
    CHECK(turns.left_until() == start + lasted + left);
  }
  turns.leave_no_longer();
  CHECK(turns.left_until() <= start);
}

}  // namespace machine_turns
