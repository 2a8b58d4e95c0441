// A lock of several members of which a majority is needed.
#include <support/catch.hpp>
#include <support/unit/joint_script.hpp>

using namespace latchkey;
using namespace latchkey::test;
using namespace std::chrono_literals;

namespace {
using said = std::vector<std::string>;
}

TEST_CASE("joint: a majority is asked for at once, and later grants join", "[unit][joint]") {
  joint_script one(majority(5));
  CHECK(one.begin() == said{"ask 0 1 2 3 4"});
  CHECK(one.last.when == one.now + 500ms);
  one.grant(4);
  one.grant(0);
  CHECK(one.grant(2) == said{"granted"});
  CHECK(one.grant(1) == said{"keep 1"});
  CHECK(one.fail(3, errc::timeout).empty());
}

TEST_CASE("joint: who has not answered when the lock is given back is not wanted any more", "[unit][joint]") {
  joint_script one(majority(5));
  one.begin();
  one.grant(4);
  one.grant(0);
  one.grant(2);
  CHECK(one.cancel(errc::closed) == said{"cancel 1", "cancel 3"});
  CHECK(one.late_grant(3) == said{"give_back 0"});
  CHECK(one.machine.granted());
}

TEST_CASE("joint: a round that cannot reach the majority is given back everywhere and paused", "[unit][joint]") {
  joint_script one(majority(5), {.seed = 3});
  one.begin();
  one.grant(0);
  one.busy(1);
  one.fail(2, errc::timeout);
  CHECK(one.busy(3) == said{"give_back 0", "cancel 4", "sleep"});
  CHECK(one.last.when >= one.now + 12ms);
  CHECK(one.last.when <= one.now + 25ms);
  CHECK(one.late_grant(4) == said{"give_back 0"});  // told by its number, not by its member
  CHECK(one.wake() == said{"ask 0 1 2 3 4"});
  one.grant(0);
  one.grant(1);
  CHECK(one.grant(2) == said{"granted"});
}

TEST_CASE("joint: a single attempt says busy if anybody did, else why", "[unit][joint]") {
  joint_script busy(majority(3), {.once = true});
  busy.begin();
  busy.fail(0, errc::connect_failed);
  CHECK(busy.busy(1) == said{"cancel 2", "busy"});
  joint_script dead(majority(3), {.once = true});
  dead.begin();
  dead.grant(2);
  dead.fail(0, errc::connect_failed, "refused");
  CHECK(dead.fail(1, errc::timeout) ==
        said{"give_back 2", "failed: " + error_code(errc::connection_lost).message() + " (refused)"});
  // Nothing of it has left.
  joint_script alone(majority(3), {.once = true});
  alone.begin();
  alone.fail(0, errc::connect_failed, "refused");
  alone.fail(1, errc::connect_failed, "refused");
  CHECK(alone.machine.error() == errc::connection_lost);  // the third was asked
  joint_script none(in_order(2), {.deadline = instant(1h) + 100ms});
  none.begin();
  none.now += 100ms;
  none.fail(0, errc::connect_failed, "refused");
  CHECK(none.machine.error() == errc::connect_failed);
  CHECK(none.machine.text() == "refused");
}

TEST_CASE("joint: a majority that will never answer well ends also an unbounded wait", "[unit][joint]") {
  joint_script one(majority(3));
  one.begin();
  one.fail(0, errc::timeout);
  CHECK(one.fail(1, errc::auth_failed) == said{"cancel 2", "sleep"});  // one of them may still be mended
  one.wake();
  one.fail(0, errc::timeout);
  one.fail(1, errc::auth_failed);
  one.wake();
  one.fail(1, errc::auth_failed, "no");
  // The first may have granted it unseen.
  CHECK(one.fail(2, errc::auth_failed).back() == "failed: " + error_code(errc::connection_lost).message() + " (no)");
}

TEST_CASE("joint: the wait bounds all rounds", "[unit][joint]") {
  joint_script one(majority(3), {.deadline = instant(1h) + 700ms});
  one.begin();
  CHECK(one.last.when == one.now + 500ms);
  one.now += 500ms;
  one.fail(0, errc::timeout);
  one.fail(1, errc::timeout);
  one.wake();
  CHECK(one.last.when == instant(1h) + 700ms);
  one.now = instant(1h) + 700ms;
  one.fail(0, errc::timeout);
  one.fail(1, errc::timeout);
  CHECK(one.machine.finished());
  CHECK(one.machine.error() == errc::timeout);
}

TEST_CASE("joint: a short wait still gives the members of the first round a moment", "[unit][joint]") {
  joint_script one(majority(3), {.deadline = instant(1h) + 1ms});
  one.begin();
  CHECK(one.last.when == one.now + 50ms);
  one.now += 2ms;
  one.grant(0);
  CHECK(one.grant(1) == said{"granted"});
}

TEST_CASE("joint: at the end of the wait busy beats the errors", "[unit][joint]") {
  joint_script one(majority(3), {.deadline = instant(1h) + 100ms});
  one.begin();
  one.busy(0);
  one.now += 100ms;
  CHECK(one.fail(1, errc::timeout) == said{"cancel 2", "busy"});
}

TEST_CASE("joint: a majority whose leases are worth nothing any more is none", "[unit][joint]") {
  joint_script one(majority(3), {.once = true});
  one.begin();
  one.grant(0, -1ms);
  CHECK(one.grant(1, 300ms) ==
        said{"give_back 0", "give_back 1", "cancel 2",
             "failed: " + error_code(errc::timeout).message() + " (the lease had ended before enough answers came)"});
}

TEST_CASE("joint: a caller who leaves a majority takes back what is unknown, too", "[unit][joint]") {
  joint_script one(majority(3));
  one.begin();
  one.grant(1);
  CHECK(one.cancel(errc::closed) ==
        said{"give_back 1", "cancel 0", "cancel 2", "failed: " + error_code(errc::closed).message()});
  CHECK(one.late_grant(0) == said{"give_back 0"});
  CHECK(one.late_grant(2) == said{"give_back 0"});
}
