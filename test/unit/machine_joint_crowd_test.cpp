// Several callers who want the same members in different orders, in virtual time.
#include <support/catch.hpp>
#include <support/unit/joint_script.hpp>

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <random>

using namespace latchkey;
using namespace latchkey::test;
using namespace std::chrono_literals;

using action_type = joint_acquire::action::type;
using answer_type = joint_acquire::answer::type;

namespace {

struct crowd;

struct caller {
  std::size_t number;
  joint_rules rules;
  int turns_left;
  std::unique_ptr<joint_acquire> call;
};

// A member: who has it, and who waits for it in which order.
struct member_lock {
  std::size_t holder = 0;  // 0: nobody
  std::deque<std::function<void()>> waiting;
};

struct crowd {
  crowd(std::size_t members, std::vector<joint_rules> each, int turns, std::uint64_t seed)
      : locks(members), random(seed) {
    for (std::size_t i = 0; i < each.size(); ++i)
      callers.push_back(std::make_unique<caller>(caller{i + 1, std::move(each[i]), turns, nullptr}));
  }

  void later(detail::nanoseconds pause, std::function<void()> what) { events.emplace(now + pause, std::move(what)); }
  detail::nanoseconds trip() { return std::chrono::microseconds(100 + random() % 900); }

  void run() {
    for (auto& one : callers) next_turn(*one);
    while (!events.empty() && now < instant(1h)) {
      auto const first = events.begin();
      now = first->first;
      auto const what = std::move(first->second);
      events.erase(first);
      what();
    }
  }

  void next_turn(caller& me) {
    if (me.turns_left-- == 0) return;
    me.call = std::make_unique<joint_acquire>(me.rules, joint_acquire::wish{.seed = random()});
    me.call->begin(now);
    perform(me);
  }

  void perform(caller& me) {
    while (auto const what = me.call->take()) {
      switch (what->what) {
        case action_type::ask:
        case action_type::wait:
          for (auto const& one : what->of)
            later(trip(), [this, &me, one, waits = what->what == action_type::wait] { arrive(me, one, waits); });
          break;
        case action_type::give_back: later(trip(), [this, member = what->of[0].member] { free(member); }); break;
        case action_type::sleep:
          later(what->when - now, [this, &me] {
            me.call->time(now);
            perform(me);
          });
          break;
        case action_type::finish: {
          CHECK(me.call->granted());
          CHECK(inside.empty());
          inside.push_back(me.number);
          auto const held = me.call->held();
          later(1ms, [this, &me, held] {
            inside.pop_back();
            for (auto const& one : held) later(trip(), [this, one] { free(one.member); });
            later(trip(), [this, &me] { next_turn(me); });
          });
          break;
        }
        default: FAIL("nobody asked for that");
      }
    }
  }

  void arrive(caller& me, joint_acquire::question asked, bool waits) {
    member_lock& lock = locks[asked.member];
    bool const is_free = lock.holder == 0 && lock.waiting.empty();
    if (is_free) lock.holder = me.number;
    auto const say = [this, &me, asked](bool granted) {
      later(trip(), [this, &me, asked, granted] {
        me.call->answered(asked.id, {.what = granted ? answer_type::granted : answer_type::busy, .until = now + 30s},
                          now);
        perform(me);
      });
    };
    if (is_free || !waits) return say(is_free);
    lock.waiting.push_back([&lock, &me, say] {
      lock.holder = me.number;
      say(true);
    });
  }

  void free(std::size_t member) {
    member_lock& lock = locks[member];
    lock.holder = 0;
    if (lock.waiting.empty()) return;
    auto const next = std::move(lock.waiting.front());
    lock.waiting.pop_front();
    next();
  }

  instant now{};
  std::multimap<instant, std::function<void()>> events;
  std::vector<member_lock> locks;
  std::vector<std::unique_ptr<caller>> callers;
  std::vector<std::size_t> inside;
  std::mt19937_64 random;
};

joint_rules shuffled(std::size_t members, std::mt19937_64& random) {
  joint_rules made = in_order(members);
  std::shuffle(made.steps.begin(), made.steps.end(), random);
  return made;
}

}  // namespace

TEST_CASE("joint: callers with opposite orders neither deadlock nor block each other for long", "[unit][joint]") {
  constexpr int turns = 200;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    joint_rules forth = in_order(2), back = forth;
    std::reverse(back.steps.begin(), back.steps.end());
    crowd all(2, {forth, back}, turns, seed);
    all.run();
    INFO("seed " << seed);
    CHECK(all.events.empty());
    CHECK(all.now < instant(2 * turns * 50ms));
    for (auto const& lock : all.locks) CHECK(lock.holder == 0);
  }
}

TEST_CASE("joint: many callers in any order all have their turns", "[unit][joint]") {
  constexpr int turns = 30;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    std::mt19937_64 random(seed);
    std::vector<joint_rules> each;
    for (int i = 0; i < 6; ++i) each.push_back(shuffled(4, random));
    crowd all(4, std::move(each), turns, seed);
    all.run();
    INFO("seed " << seed);
    CHECK(all.events.empty());
    CHECK(all.now < instant(6 * turns * 200ms));
    for (auto const& lock : all.locks) CHECK((lock.holder == 0 && lock.waiting.empty()));
  }
}

// A lock of several members of which a majority is needed.

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

TEST_CASE("joint: rounds follow each other soon, however many were lost", "[unit][joint]") {
  joint_script one(majority(3));
  one.begin();
  for (int i = 0; i < 20; ++i) {
    one.busy(0);
    CHECK(one.busy(1) == said{"cancel 2", "sleep"});
    CHECK(one.last.when >= one.now + 12ms);
    CHECK(one.last.when <= one.now + 25ms);
    CHECK(one.wake() == said{"ask 0 1 2"});
  }
}

TEST_CASE("joint: who waited in vain hears what kept nothing behind, as it was", "[unit][joint]") {
  error_code const why = GENERATE(errc::connect_failed, errc::no_master);
  joint_script none(in_order(2), {.deadline = instant(1h) + 100ms});
  none.begin();
  none.now += 100ms;
  none.fail(0, why, "none");
  CHECK(none.machine.error() == why);
  CHECK(none.machine.text() == "none");
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
        said{"give_back 2", "failed: " + error_code(errc::connect_failed).message() + " (refused)"});
  // Nothing of it has left.
  joint_script alone(majority(3), {.once = true});
  alone.begin();
  alone.fail(0, errc::connect_failed, "refused");
  alone.fail(1, errc::connect_failed, "refused");
  CHECK(alone.machine.error() == errc::connect_failed);
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
  // The first may have granted it unseen: that alone keeps nobody out.
  CHECK(one.fail(2, errc::auth_failed).back() == "failed: " + error_code(errc::auth_failed).message() + " (no)");
}

TEST_CASE("joint: no error of a majority denies that enough members may have granted it unseen", "[unit][joint]") {
  joint_script one(majority(5), {.once = true});
  one.begin();
  one.fail(0, errc::auth_failed, "no");
  one.fail(1, errc::timeout);
  CHECK(one.fail(2, errc::auth_failed).back() == "failed: " + error_code(errc::connection_lost).message() + " (no)");
}

TEST_CASE("joint: a majority that was never sent anything says that there is no connection", "[unit][joint]") {
  joint_script one(majority(3), {.deadline = instant(1h) + 100ms});
  one.begin();
  one.now += 100ms;
  one.fail(0, errc::connect_failed, "refused");
  one.fail(1, errc::connect_failed, "refused");
  CHECK(one.fail(2, errc::connect_failed, "refused").back() ==
        "failed: " + error_code(errc::connect_failed).message() + " (refused)");
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
  CHECK_FALSE(one.machine.finished());
  one.busy(2);
  CHECK(one.machine.finished());
  CHECK(one.machine.error() == errc::timeout);
}

TEST_CASE("joint: no round begins that takes more than a quarter of what is left of the wait", "[unit][joint]") {
  joint_script one(majority(3), {.deadline = instant(1h) + 200ms});
  one.begin();
  one.now += 20ms;
  one.busy(0);
  CHECK(one.busy(1) == said{"cancel 2", "sleep"});
  one.now = instant(1h) + 120ms;
  SECTION("it may just be answered in time") { CHECK(one.wake() == said{"ask 0 1 2"}); }
  SECTION("it may not") {
    one.now += 1ns;
    CHECK(one.wake() == said{"sleep"});
    CHECK(one.last.when == instant(1h) + 200ms);
    CHECK(one.wake() == said{"busy"});
  }
}

TEST_CASE("joint: a member that does not answer makes no round long", "[unit][joint]") {
  joint_script one(majority(3), {.deadline = instant(1h) + 200ms});
  one.begin();
  one.now += 1ms;
  one.busy(0);
  one.grant(1);
  one.now += 100ms;
  error_code const why = GENERATE(errc::timeout, errc::connect_failed);
  CHECK(one.fail(2, why) == said{"give_back 1", "sleep"});
  one.now = instant(1h) + 190ms;
  SECTION("not even a short one is begun in the last moment") {
    one.now += 1ns;
    CHECK(one.wake() == said{"sleep"});
  }
  SECTION("before, it is") { CHECK(one.wake() == said{"ask 0 1 2"}); }
}

TEST_CASE("joint: a first round that took a while to connect is followed by others", "[unit][joint]") {
  joint_script one(majority(3), {.deadline = instant(1h) + 400ms});
  one.begin();
  one.now += 100ms;
  one.busy(0);
  CHECK(one.busy(1) == said{"cancel 2", "sleep"});
  one.now = instant(1h) + 200ms;
  SECTION("by one that takes no longer") {
    CHECK(one.wake() == said{"ask 0 1 2"});
    one.now += 1ms;
    one.busy(0);
    one.busy(1);
    one.now = instant(1h) + 390ms;
    CHECK(one.wake() == said{"ask 0 1 2"});
  }
  SECTION("though not in the second half of the wait") {
    one.now += 1ns;
    CHECK(one.wake() == said{"sleep"});
  }
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
  CHECK(one.fail(1, errc::connect_failed).empty());
  CHECK(one.busy(2) == said{"busy"});
}

TEST_CASE("joint: a majority that could not be asked at the end of the wait is not known to be busy", "[unit][joint]") {
  joint_script one(majority(3), {.deadline = instant(1h) + 100ms});
  one.begin();
  one.busy(0);
  CHECK(one.busy(1) == said{"cancel 2", "sleep"});
  one.wake();
  one.now = instant(1h) + 100ms;
  one.fail(0, errc::connect_failed, "refused");
  one.fail(1, errc::connect_failed, "refused");
  SECTION("nor is any other member") {
    CHECK(one.fail(2, errc::connect_failed, "refused") ==
          said{"failed: " + error_code(errc::timeout).message() + " (refused)"});
  }
  SECTION("unless one of them says so") { CHECK(one.busy(2) == said{"busy"}); }
}

TEST_CASE("joint: two of two who are busy when the wait ends are busy", "[unit][joint]") {
  joint_script one(majority(2), {.deadline = instant(1h) + 100ms});
  one.begin();
  one.now += 100ms;
  CHECK(one.busy(0).empty());
  CHECK(one.busy(1) == said{"busy"});
  joint_script rounds(majority(2), {.deadline = instant(1h) + 100ms});
  rounds.begin();
  CHECK(rounds.busy(0) == said{"cancel 1", "sleep"});
  rounds.now += 100ms;
  CHECK(rounds.wake() == said{"busy"});
  joint_script late(majority(3), {.deadline = instant(1h) + 100ms});
  late.begin();
  late.now += 100ms;
  late.busy(0);
  CHECK(late.busy(1).empty());
  CHECK(late.grant(2) == said{"give_back 2", "busy"});
}

TEST_CASE("joint: nobody is told busy whom a majority may have granted it unseen", "[unit][joint]") {
  joint_script one(majority(3), {.deadline = instant(1h) + 100ms});
  one.begin();
  one.busy(0);
  one.now += 100ms;
  CHECK(one.fail(1, errc::timeout).empty());
  CHECK(one.fail(2, errc::timeout) == said{"failed: " + error_code(errc::timeout).message()});
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
