// A lock of several members of which all are needed: who is asked when, and what is given back.
#include <support/catch.hpp>
#include <support/unit/joint_script.hpp>

using namespace latchkey;
using namespace latchkey::test;
using namespace std::chrono_literals;

namespace {
using said = std::vector<std::string>;
}

TEST_CASE("joint: members are tried one after the other, in the order of the list", "[unit][joint]") {
  joint_script one(in_order(3));
  CHECK(one.begin() == said{"ask 0"});
  CHECK(one.grant(0) == said{"ask 1"});
  CHECK(one.grant(1) == said{"ask 2"});
  CHECK(one.grant(2) == said{"granted"});
  CHECK(one.machine.held().size() == 3);
}

TEST_CASE("joint: members of a bundle are tried together", "[unit][joint]") {
  joint_script one(in_order(4, {{0, 2}, {1}, {3}}));
  CHECK(one.begin() == said{"ask 0 2"});
  CHECK(one.grant(0).empty());
  CHECK(one.grant(2) == said{"ask 1"});
  CHECK(one.grant(1) == said{"ask 3"});
  CHECK(one.grant(3) == said{"granted"});
}

TEST_CASE("joint: it waits for the busy one while it holds nothing, then tries the others", "[unit][joint]") {
  joint_script one(in_order(3));
  one.begin();
  one.grant(0);
  CHECK(one.busy(1) == said{"give_back 0", "wait 1"});
  CHECK(one.machine.held().empty());
  CHECK(one.grant(1) == said{"ask 0"});
  CHECK(one.grant(0) == said{"ask 2"});
  CHECK(one.busy(2) == said{"give_back 0", "give_back 1", "wait 2"});
  one.grant(2);
  one.grant(0);
  CHECK(one.grant(1) == said{"granted"});
}

TEST_CASE("joint: what was lost before the last one is granted is asked for again while there is time",
          "[unit][joint]") {
  joint_script one(in_order(2));
  one.begin();
  one.grant(0);
  CHECK(one.grant(1) == said{"granted"});
  CHECK(one.lose() == said{"give_back 0", "give_back 1", "wait 0"});
  CHECK_FALSE(one.machine.finished());
  CHECK(one.grant(0) == said{"ask 1"});
  CHECK(one.grant(1) == said{"granted"});

  joint_script late(in_order(2), {.deadline = one.now});
  late.begin();
  late.grant(0);
  late.grant(1);
  CHECK(late.lose() == said{"give_back 0", "give_back 1", "failed: no answer in time"});

  joint_script most(majority(3));
  most.begin();
  most.grant(0);
  CHECK(most.grant(2) == said{"granted"});
  CHECK(most.lose() == said{"give_back 0", "give_back 2", "cancel 1", "sleep"});
  CHECK(most.wake() == said{"ask 0 1 2"});
}

TEST_CASE("joint: of several busy ones it waits for the one of least rank", "[unit][joint]") {
  auto rules = in_order(3, {{0, 1, 2}});
  rules.rank = {2, 1, 0};
  joint_script one(rules);
  one.begin();
  one.busy(0);
  one.untried(1);
  CHECK(one.busy(2) == said{"wait 2"});
  CHECK(one.grant(2) == said{"ask 0 1"});
}

TEST_CASE("joint: a bundle that was torn apart is given back where it was granted", "[unit][joint]") {
  joint_script one(in_order(3, {{0, 1, 2}}));
  one.begin();
  one.grant(0);
  one.grant(2);
  CHECK(one.busy(1) == said{"give_back 0", "give_back 2", "wait 1"});
}

TEST_CASE("joint: who was left untried though nobody was busy is tried again, not for ever", "[unit][joint]") {
  joint_script one(in_order(2, {{0, 1}}));
  one.begin();
  one.grant(0);
  CHECK(one.untried(1) == said{"ask 1"});
  said last;
  for (int i = 0; i < 100 && !one.machine.finished(); ++i) last = one.untried(1);
  CHECK(last ==
        said{"give_back 0", "failed: " + error_code(errc::server_error).message() + " (an answer of unexpected form)"});
}

TEST_CASE("joint: untried ones behind others that were granted are no sign of a server that is not ours",
          "[unit][joint]") {
  joint_script one(in_order(3, {{0, 1, 2}}));
  auto const pause = [&] {
    if (one.last.what == joint_acquire::action::type::sleep) one.wake();
  };
  one.begin();
  for (int i = 0; i < 30; ++i) {
    one.busy(0);
    if (i == 0) one.untried(2);
    one.untried(1);
    pause();
    CHECK(one.grant(0) == said{"ask 1 2"});
    one.grant(1);
    CHECK(one.untried(2) == said{"ask 2"});
    one.busy(2);
    pause();
    CHECK(one.grant(2) == said{"ask 0 1"});
  }
}

TEST_CASE("joint: what is left to others is waited for", "[unit][joint]") {
  auto rules = in_order(3, {{0, 1, 2}});
  rules.rank = {2, 0, 1};
  joint_script one(rules);
  one.begin();
  for (std::size_t const member : {0u, 1u}) one.untried(member);
  CHECK(one.untried(2) == said{"wait 1"});
  CHECK(one.grant(1) == said{"ask 0 2"});
  one.grant(0);
  CHECK(one.grant(2) == said{"granted"});
}

TEST_CASE("joint: a first try comes back with a wait, unless there is none", "[unit][joint]") {
  joint_script one(in_order(3, {{0, 1}})), once(in_order(3, {{0, 1}}), {.once = true});
  one.begin();
  CHECK(one.last.comes_back);
  one.busy(0);
  CHECK(one.untried(1) == said{"wait 0"});
  CHECK_FALSE(one.last.comes_back);
  CHECK(one.grant(0) == said{"ask 1"});
  CHECK_FALSE(one.last.comes_back);  // it holds one already
  once.begin();
  CHECK_FALSE(once.last.comes_back);
  joint_script most(majority(3));
  most.begin();
  CHECK_FALSE(most.last.comes_back);
}

TEST_CASE("joint: a single attempt is over with the first busy one", "[unit][joint]") {
  joint_script one(in_order(3), {.once = true});
  one.begin();
  one.grant(0);
  CHECK(one.busy(1) == said{"give_back 0", "busy"});
}

TEST_CASE("joint: the wait bounds the whole call", "[unit][joint]") {
  joint_script one(in_order(2), {.deadline = instant(1h) + 100ms});
  one.begin();
  CHECK(one.last.when == instant(1h) + 100ms);
  one.busy(0);
  CHECK(one.last.when == instant(1h) + 100ms);

  SECTION("it ends while it waits for a member") {
    one.now += 100ms;
    CHECK(one.busy(0) == said{"busy"});
  }
  SECTION("it ends while it tries the others") {
    one.now += 80ms;
    one.grant(0);
    CHECK(one.last.when == instant(1h) + 130ms);
    one.now += 50ms;
    CHECK(one.fail(1, errc::timeout) == said{"give_back 0", "failed: " + error_code(errc::timeout).message()});
  }
  SECTION("it is over before the next member is asked") {
    one.now += 100ms;
    CHECK(one.grant(0) == said{"give_back 0", "busy"});
  }
}

TEST_CASE("joint: without a word from anybody the end of the wait is a time-out", "[unit][joint]") {
  joint_script one(in_order(2), {.deadline = instant(1h) + 100ms});
  one.begin();
  one.grant(0);
  one.now += 100ms;
  CHECK(one.fail(1, errc::timeout) == said{"give_back 0", "failed: " + error_code(errc::timeout).message()});
}

// Somebody had it before.
TEST_CASE("joint: who could not ask at the end of the wait whether it is busy still is not told so", "[unit][joint]") {
  joint_script one(in_order(2), {.deadline = instant(1h) + 100ms});
  one.begin();
  CHECK(one.busy(0) == said{"wait 0"});
  SECTION("the one it waits for") {
    one.now += 100ms;
    CHECK(one.fail(0, errc::connect_failed, "refused") ==
          said{"failed: " + error_code(errc::timeout).message() + " (refused)"});
  }
  SECTION("another one") {
    CHECK(one.grant(0) == said{"ask 1"});
    one.now += 100ms;
    CHECK(one.fail(1, errc::connect_failed, "refused") ==
          said{"give_back 0", "failed: " + error_code(errc::timeout).message() + " (refused)"});
  }
  SECTION("nor whoever was granted all meanwhile, and lost it") {
    one.grant(0);
    one.grant(1);
    CHECK(one.lose() == said{"give_back 0", "give_back 1", "wait 0"});
    one.now += 100ms;
    CHECK(one.grant(0) == said{"give_back 0", "failed: " + error_code(errc::timeout).message()});
  }
  SECTION("unless one has said so since") {
    CHECK(one.fail(0, errc::connect_failed, "refused") == said{"wait 0"});
    one.now += 100ms;
    CHECK(one.busy(0) == said{"busy"});
  }
}

TEST_CASE("joint: an error of a member is given back and reported", "[unit][joint]") {
  joint_script one(in_order(3));
  one.begin();
  one.grant(0);
  CHECK(one.fail(1, errc::wrong_type, "WRONGTYPE x") ==
        said{"give_back 0", "failed: " + error_code(errc::wrong_type).message() + " (WRONGTYPE x)"});
}

TEST_CASE("joint: what may pass is waited for if the call may wait", "[unit][joint]") {
  auto const& [why, text] = GENERATE(std::pair<errc, char const*>{errc::connection_lost, ""},
                                     std::pair<errc, char const*>{errc::server_error, "LOADING x"});
  joint_script waits(in_order(2));
  waits.begin();
  waits.grant(0);
  CHECK(waits.fail(1, why, text) == said{"give_back 0", "wait 1"});
  joint_script once(in_order(2), {.once = true});
  once.begin();
  once.grant(0);
  CHECK(once.fail(1, why, text).size() == 2);
  CHECK(once.machine.error() == why);
}

TEST_CASE("joint: of two errors the one that will not pass is reported", "[unit][joint]") {
  joint_script one(in_order(3, {{0, 1, 2}}));
  one.begin();
  one.fail(0, errc::connect_failed);
  one.fail(1, errc::auth_failed);
  one.fail(2, errc::connect_failed);
  CHECK(one.machine.error() == errc::auth_failed);
}

TEST_CASE("joint: no error says that nothing is left where a member was asked and never answered", "[unit][joint]") {
  joint_script one(in_order(3, {{0, 1, 2}}));
  one.begin();
  one.fail(0, errc::connection_lost);
  one.fail(1, errc::auth_failed, "WRONGPASS");
  one.fail(2, errc::timeout);
  CHECK(one.machine.error() == errc::connection_lost);
  CHECK(one.machine.text() == "WRONGPASS");
}

TEST_CASE("joint: after several lost rounds it pauses, longer each time, before it waits again", "[unit][joint]") {
  joint_script one(in_order(2), {.seed = 7});
  one.begin();
  CHECK(one.busy(0) == said{"wait 0"});
  for (int round = 2; round <= 3; ++round) {
    one.grant(round % 2 == 0 ? 0 : 1);
    one.busy(round % 2 == 0 ? 1 : 0);
  }
  one.grant(0);
  CHECK(one.busy(1) == said{"give_back 0", "sleep"});
  CHECK(one.last.when - one.now <= 4ms);
  CHECK(one.wake() == said{"wait 1"});
  detail::nanoseconds longest{0};
  for (int round = 0; round < 30; ++round) {
    std::size_t const mine = round % 2 == 0 ? 1 : 0;
    one.grant(mine);
    REQUIRE(one.busy(1 - mine).back() == "sleep");
    longest = std::max(longest, one.last.when - one.now);
    one.wake();
  }
  CHECK(longest <= 400ms);
  CHECK(longest > 100ms);
}

namespace {

// Of two members each time the other one is busy, until it pauses.
void lose_rounds(joint_script& one) {
  one.begin();
  one.busy(0);
  for (std::size_t const mine : {0u, 1u}) {
    one.grant(mine);
    one.busy(1 - mine);
  }
  one.grant(0);
  REQUIRE(one.busy(1).back() == "sleep");
}

}  // namespace

TEST_CASE("joint: a pause ends with the wait", "[unit][joint]") {
  joint_script one(in_order(2), {.deadline = instant(1h) + 1us});
  lose_rounds(one);
  CHECK(one.last.when <= instant(1h) + 1us);
  one.now = instant(1h) + 1us;
  CHECK(one.wake() == said{"busy"});
}

TEST_CASE("joint: a caller who leaves takes everything back, and what is granted later too", "[unit][joint]") {
  joint_script one(in_order(3, {{0}, {1, 2}}));
  one.begin();
  one.grant(0);
  one.grant(2);
  auto const aborted = error_code(ECANCELED, boost::system::system_category());
  CHECK(one.cancel(aborted) == said{"give_back 0", "give_back 2", "cancel 1", "failed: " + aborted.message()});
  CHECK(one.late_grant(1) == said{"give_back 0"});
  CHECK(one.cancel(aborted).empty());
  CHECK(one.machine.held().empty());
}

TEST_CASE("joint: a caller who leaves during a pause is told at once", "[unit][joint]") {
  joint_script one(in_order(2));
  lose_rounds(one);
  CHECK(one.cancel(errc::closed) == said{"failed: " + error_code(errc::closed).message()});
  CHECK(one.wake().empty());
}

TEST_CASE("joint: a lease that ended before the last member was granted came too late", "[unit][joint]") {
  std::string const late =
      "failed: " + error_code(errc::timeout).message() + " (the lease had ended before its answer came)";
  SECTION("a single attempt ends with it") {
    joint_script one(in_order(2), {.once = true});
    one.begin();
    one.grant(0, 10ms);
    one.now += 10ms;
    CHECK(one.grant(1) == said{"give_back 0", "give_back 1", late});
  }
  SECTION("while there is time all are asked anew, the one that was slow first") {
    joint_script one(in_order(3), {.deadline = instant(1h) + 100ms});
    one.begin();
    one.grant(0, 10ms);
    one.grant(1, 20ms);
    one.now += 20ms;
    CHECK(one.grant(2) == said{"give_back 0", "give_back 1", "give_back 2", "wait 2"});
    CHECK(one.last.when == instant(1h) + 100ms);
    CHECK(one.grant(2) == said{"ask 0"});
    one.grant(0);
    SECTION("and granted") { CHECK(one.grant(1) == said{"granted"}); }
    SECTION("until the wait ends") {
      one.now += 80ms;
      one.grant(1, 0ms);
      CHECK(one.machine.error() == errc::timeout);
      CHECK(one.machine.text() == "the lease had ended before its answer came");
    }
  }
  SECTION("the end of the wait says why it was in vain") {
    joint_script one(in_order(2), {.deadline = instant(1h) + 100ms});
    one.begin();
    one.grant(0, 10ms);
    one.now += 10ms;
    one.grant(1);
    one.now += 90ms;
    CHECK(one.grant(1) == said{"give_back 1", late});
  }
  SECTION("who had it before the grant that came too late has it no more") {
    joint_script one(in_order(2), {.deadline = instant(1h) + 100ms});
    one.begin();
    one.busy(0);
    one.grant(0, 10ms);
    one.now += 10ms;
    one.grant(1);
    one.now += 90ms;
    CHECK(one.grant(1) == said{"give_back 1", late});
  }
}

TEST_CASE("joint: a member that does not answer is not asked for long while others are held", "[unit][joint]") {
  for (bool const once : {false, true}) {
    joint_script one(in_order(2), {.once = once});
    one.begin();
    CHECK(one.last.when == detail::never);
    CHECK(one.grant(0) == said{"ask 1"});
    CHECK(one.last.when == one.now + 3s);
    auto const then = one.fail(1, errc::timeout, "");
    if (once) {
      CHECK(then == said{"give_back 0", "failed: " + error_code(errc::timeout).message()});
    } else {
      CHECK(then == said{"give_back 0", "wait 1"});
      CHECK(one.last.when == detail::never);
    }
  }
}

TEST_CASE("joint: a short wait leaves the first tries the time of one", "[unit][joint]") {
  joint_script one(in_order(3));
  one.now = detail::instant(1h);
  joint_script brief(in_order(3), {.deadline = one.now + 1ms});
  brief.now = one.now;
  brief.begin();
  brief.now += 30ms;
  CHECK(brief.grant(0) == said{"ask 1"});
  brief.now += 19ms;
  CHECK(brief.grant(1) == said{"ask 2"});
  brief.now += 19ms;
  CHECK(brief.grant(2) == said{"granted"});

  joint_script late(in_order(2), {.deadline = one.now + 1ms});
  late.now = one.now;
  late.begin();
  late.now += 51ms;
  CHECK(late.grant(0) == said{"give_back 0", "failed: " + error_code(errc::timeout).message()});
}

TEST_CASE("joint: far servers have a few times as long as they took to answer", "[unit][joint]") {
  joint_script one(joint_rules(in_order(2)).with_lease(400ms));
  one.begin();
  one.now += 64ms;
  one.grant(0);
  CHECK(one.last.when == one.now + 250ms);
  one.now += 100ms;
  CHECK(one.fail(1, errc::timeout, "") == said{"give_back 0", "wait 1"});
  one.now += 10s;  // busy for long, which says nothing of the way
  CHECK(one.grant(1) == said{"ask 0"});
  CHECK(one.last.when == one.now + 250ms);
  joint_script near(joint_rules(in_order(2)).with_lease(400ms));
  near.begin();
  near.now += 1ms;
  near.grant(0);
  CHECK(near.last.when == near.now + 50ms);
}

TEST_CASE("joint: who is over does not leave it to others once more", "[unit][joint]") {
  joint_script brief(in_order(2, {{0, 1}}), {.deadline = detail::instant(1h) + 1ms});
  brief.begin();
  CHECK(brief.last.comes_back);
  brief.now += 2ms;
  brief.untried(0);
  CHECK(brief.untried(1) == said{"ask 0 1"});
  CHECK_FALSE(brief.last.comes_back);
}
