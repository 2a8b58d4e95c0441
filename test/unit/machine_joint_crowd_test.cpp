// Several callers who want the same members in different orders, in virtual time.
#include <support/catch.hpp>
#include <support/unit/joint_script.hpp>

#include <algorithm>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <random>

using namespace latchkey;
using namespace latchkey::test;
using namespace std::chrono_literals;

using action_type = joint_acquire::action::type;
using answer_type = joint_acquire::answer::type;

namespace {

struct crowd;

// One turn of a caller.
struct turn {
  joint_acquire call;
  std::map<joint_acquire::attempt, std::size_t> member;
  std::vector<std::size_t> held{};  // later grants, too
};

struct caller {
  std::size_t number;
  joint_rules rules;
  int turns_left;
  std::shared_ptr<turn> now{};
  std::optional<std::size_t> gate{};
  instant asked{};
  detail::nanoseconds longest{};
};

// A member: who has it, and who waits for it in which order.
struct member_lock {
  std::size_t holder = 0;  // 0: nobody
  std::list<std::function<void()>> waiting;
};

struct crowd {
  crowd(std::size_t members, std::vector<joint_rules> each, int turns, std::uint64_t seed)
      : locks(members), random(seed) {
    for (std::size_t i = 0; i < each.size(); ++i)
      callers.push_back(std::make_unique<caller>(caller{i + 1, std::move(each[i]), turns}));
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
    me.asked = now;
    joint_acquire::wish const wish{.seed = random(), .gate = std::exchange(me.gate, std::nullopt)};
    me.now = std::make_shared<turn>(turn{joint_acquire(me.rules, wish), {}});
    me.now->call.begin(now);
    perform(me, me.now);
  }

  void perform(caller& me, std::shared_ptr<turn> const& of) {
    while (auto const what = of->call.take()) {
      switch (what->what) {
        case action_type::ask:
        case action_type::wait:
          for (auto const& one : what->of) {
            of->member[one.id] = one.member;
            instant const until = what->what == action_type::wait ? what->when : now;
            later(trip(), [this, &me, of, one, until] { arrive(me, of, one, until); });
          }
          break;
        case action_type::give_back:
          later(trip(), [this, &me, member = of->member.at(what->of[0].id)] { free(me, member); });
          break;
        case action_type::cancel: break;  // it was sent
        case action_type::keep: of->held.push_back(what->of[0].member); break;
        case action_type::sleep:
          later(what->when - now, [this, &me, of] {
            of->call.time(now);
            perform(me, of);
          });
          break;
        case action_type::finish:
          CHECK(of->call.granted());
          CHECK(inside.empty());
          inside.push_back(me.number);
          me.longest = std::max(me.longest, now - me.asked);
          for (auto const& one : of->call.held()) of->held.push_back(one.member);
          later(1ms, [this, &me, of] {
            inside.pop_back();
            of->call.cancel(errc::closed, now);
            for (auto const member : of->held) later(trip(), [this, &me, member] { free(me, member); });
            perform(me, of);
            later(1ms, [this, &me] { next_turn(me); });
          });
      }
    }
  }

  void arrive(caller& me, std::shared_ptr<turn> const& of, joint_acquire::question asked, instant until) {
    member_lock& lock = locks[asked.member];
    bool const is_free = lock.holder == 0 && lock.waiting.empty();
    if (is_free) lock.holder = me.number;
    auto const say = [this, &me, of, asked](bool granted) {
      later(trip(), [this, &me, of, asked, granted] {
        of->call.answered(asked.id, {.what = granted ? answer_type::granted : answer_type::busy, .until = now + 30s},
                          now);
        perform(me, of);
      });
    };
    if (is_free || until <= now) return say(is_free);
    auto const place = lock.waiting.insert(lock.waiting.end(), [] {});
    auto const waits = std::make_shared<bool>(true);
    *place = [&lock, &me, say, waits] {
      lock.holder = me.number;
      *waits = false;
      say(true);
    };
    if (until == detail::never) return;
    later(until - now, [&lock, place, waits, say] {
      if (!*waits) return;
      lock.waiting.erase(place);
      say(false);
    });
  }

  void free(caller& me, std::size_t member) {
    member_lock& lock = locks[member];
    lock.holder = 0;
    if (lock.waiting.empty()) return;
    me.gate = std::min(member, me.gate.value_or(member));
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

TEST_CASE("joint: callers who want a majority all the time have it in turn", "[unit][joint]") {
  constexpr int turns = 100;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    crowd all(5, std::vector<joint_rules>(4, majority(5)), turns, seed);
    all.run();
    INFO("seed " << seed);
    CHECK(all.events.empty());
    CHECK(all.now < instant(4 * turns * 8ms));
    for (auto const& one : all.callers) CHECK(one->longest < 250ms);
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
  CHECK(one.busy(3) == said{"give_back 0", "cancel 4", "wait 1"});
  CHECK(one.last.when >= one.now + 12ms);
  CHECK(one.last.when <= one.now + 25ms);
  CHECK(one.late_grant(4) == said{"give_back 0"});  // told by its number, not by its member
  CHECK(one.busy(1) == said{"ask 0 1 2 3 4"});
  one.grant(0);
  one.grant(1);
  CHECK(one.grant(2) == said{"granted"});
}

TEST_CASE("joint: whoever has the member that was busy asks the others", "[unit][joint]") {
  joint_script one(majority(5));
  one.begin();
  one.busy(3);
  one.busy(1);
  CHECK(one.busy(2) == said{"cancel 0", "cancel 4", "wait 1"});
  CHECK(one.grant(1) == said{"ask 0 2 3 4"});
  one.grant(4);
  CHECK(one.grant(0) == said{"granted"});
}

TEST_CASE("joint: callers who meet at their gates again and again are told apart by a pause", "[unit][joint]") {
  joint_script one(majority(3));
  auto const meets = [&](std::size_t gate, std::size_t other, std::size_t third) {
    one.grant(gate);
    one.busy(other);
    return one.busy(third);
  };
  one.begin();
  one.busy(0);
  CHECK(one.busy(1) == said{"cancel 2", "wait 0"});
  CHECK(meets(0, 1, 2) == said{"give_back 0", "wait 1"});
  CHECK(one.busy(1) == said{"ask 0 1 2"});  // in vain, so it met nobody
  one.busy(0);
  CHECK(one.busy(1) == said{"cancel 2", "wait 0"});
  CHECK(meets(0, 1, 2) == said{"give_back 0", "wait 1"});
  CHECK(meets(1, 0, 2) == said{"give_back 1", "wait 0"});
  CHECK(meets(0, 1, 2) == said{"give_back 0", "sleep"});
}

TEST_CASE("joint: whoever comes back while others wait goes through their gate", "[unit][joint]") {
  joint_script one(majority(3), {.gate = 1});
  CHECK(one.begin() == said{"wait 1"});
  CHECK(one.last.when >= one.now + 12ms);
  CHECK(one.last.when <= one.now + 25ms);
  CHECK(one.grant(1) == said{"ask 0 2"});
  CHECK(one.grant(2) == said{"granted"});
  joint_script stale(majority(3), {.deadline = instant(1h) + 60ms, .gate = 1});
  stale.begin();
  stale.now += 25ms;
  CHECK(stale.busy(1) == said{"ask 0 1 2"});  // whoever has that one may have no other
  // Who has no time for both asks all.
  joint_script hurried(majority(3), {.deadline = instant(1h) + 50ms, .gate = 1});
  CHECK(hurried.begin() == said{"ask 0 1 2"});
  joint_script once(majority(3), {.once = true, .gate = 1});
  CHECK(once.begin() == said{"ask 0 1 2"});
  joint_script alone(majority(1), {.gate = 0});
  alone.begin();
  CHECK(alone.grant(0) == said{"granted"});
}

TEST_CASE("joint: a gate that fails is followed by a pause, and one in vain by a round", "[unit][joint]") {
  joint_script one(majority(3), {.deadline = instant(1h) + 200ms});
  one.begin();
  one.busy(0);
  one.busy(1);
  CHECK(one.fail(0, errc::connection_lost) == said{"sleep"});
  CHECK(one.wake() == said{"ask 0 1 2"});
  one.busy(1);
  CHECK(one.busy(2) == said{"cancel 0", "wait 1"});
  CHECK(one.busy(1) == said{"ask 0 1 2"});
  one.busy(0);
  CHECK(one.busy(2) == said{"cancel 1", "wait 0"});
  one.now = instant(1h) + 200ms;
  CHECK(one.last.when <= one.now);
  CHECK(one.busy(0).back() != "ask 0 1 2");
  CHECK(one.machine.finished());
}

TEST_CASE("joint: the wait ends at the gate, and nothing is kept", "[unit][joint]") {
  joint_script one(majority(3), {.deadline = instant(1h) + 100ms});
  one.begin();
  one.busy(0);
  CHECK(one.busy(1) == said{"cancel 2", "wait 0"});
  one.now += 100ms;
  CHECK(one.grant(0) == said{"give_back 0", "busy"});
  joint_script left(majority(3));
  left.begin();
  left.busy(0);
  left.busy(1);
  CHECK(left.cancel(errc::closed) == said{"cancel 0", "failed: " + error_code(errc::closed).message()});
  CHECK(left.late_grant(0) == said{"give_back 0"});
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

TEST_CASE("joint: two of two who are busy when the wait ends are busy", "[unit][joint]") {
  joint_script one(majority(2), {.deadline = instant(1h) + 100ms});
  one.begin();
  one.now += 100ms;
  CHECK(one.busy(0).empty());
  CHECK(one.busy(1) == said{"busy"});
  joint_script rounds(majority(2), {.deadline = instant(1h) + 100ms});
  rounds.begin();
  CHECK(rounds.busy(0) == said{"cancel 1", "wait 0"});
  rounds.now += 100ms;
  CHECK(rounds.busy(0) == said{"busy"});
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
