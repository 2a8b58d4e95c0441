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
