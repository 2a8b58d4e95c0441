// What joint locks count: who is asked together, how long a hold lasts, and what many answers say.
#include <joint/machine/joint_answer.hpp>
#include <joint/machine/joint_count.hpp>
#include <joint/machine/joint_rules.hpp>
#include <support/catch.hpp>

#include <deque>

using namespace latchkey;
using namespace latchkey::detail;
using namespace std::chrono_literals;

namespace {

using member = joint_rules::member;
using steps = std::vector<std::vector<std::size_t>>;

struct shown_part {
  hold_link link;
  joint_trust trust{link, 0ns};
};

// A hold of so many members, and until when each of them is shown.
struct counted_hold {
  counted_hold(std::size_t members, std::size_t quorum, nanoseconds drift = 0ns) : count(quorum) {
    std::vector<shown_part*> all;
    for (std::size_t i = 0; i < members; ++i) {
      auto& one = parts.emplace_back();
      one.link.show(instant(1h) + i * 1s);
      one.trust = joint_trust(one.link, drift);
      all.push_back(&one);
    }
    began = count.begin(all);
  }

  std::deque<shown_part> parts;
  joint_count<shown_part*> count;
  bool began = false;
};

operation answer_to(operation::type what, release_result found, error_code why = {}) {
  operation one;
  one.what = what;
  one.released = found;
  one.error = why;
  return one;
}

}  // namespace

TEST_CASE("joint rules: what one script call may take is asked together", "[unit][joint]") {
  CHECK(joint_rules::all_of({{"a", 1}, {"b", 2}, {"c", 1}, {"d", 0}, {"e", 0}}).steps == steps{{0, 2}, {1}, {3}, {4}});
}

TEST_CASE("joint rules: of what is asked together all clients find the same one busy", "[unit][joint]") {
  CHECK(joint_rules::all_of({{"c", 1}, {"a", 1}, {"d", 2}, {"b", 1}}).steps == steps{{1, 3, 0}, {2}});
}

TEST_CASE("joint rules: the same name twice is a re-entry, behind the first", "[unit][joint]") {
  CHECK(joint_rules::all_of({{"a", 1}, {"a", 1}, {"b", 1}}).steps == steps{{0, 2}, {1}});
}

TEST_CASE("joint rules: no script call takes more than a bundle", "[unit][joint]") {
  std::vector<std::string> names;
  for (std::size_t i = 0; i <= most_bundled; ++i) names.push_back(std::to_string(i));
  std::vector<member> all;
  for (auto const& name : names) all.push_back({name, 1});
  auto const rules = joint_rules::all_of(all);
  REQUIRE(rules.steps.size() == 2);
  CHECK(rules.steps[0].size() == most_bundled);
}

TEST_CASE("joint rules: clients that list the members differently wait for the same one", "[unit][joint]") {
  CHECK(joint_rules::all_of({{"b", 0}, {"a", 0}}).rank == std::vector<std::size_t>{1, 0});
}

TEST_CASE("joint rules: only a majority is trusted for less than the lease", "[unit][joint]") {
  CHECK(joint_rules::majority_of(5).drift(1s) == 12ms);
  CHECK(joint_rules::all_of({{"a", 0}}).drift(1s) == 0ms);
  CHECK(joint_rules::majority_of(5).with_lease(30s).member_time == 3s);
  CHECK(joint_rules::majority_of(5).with_lease(100ms).member_time == 50ms);
}

TEST_CASE("joint count: a hold lasts as long as a quorum of its members", "[unit][joint]") {
  counted_hold all(3, 3), most(3, 2, 2ms);
  CHECK(all.count.until() == instant(1h));
  CHECK(most.count.until() == instant(1h) + 1s - 2ms);
}

TEST_CASE("joint count: it is lost with one member more than it can spare", "[unit][joint]") {
  counted_hold most(3, 2);
  most.parts[2].link.lost = true;
  CHECK_FALSE(most.count.too_few());
  CHECK(most.count.until() == instant(1h));
  most.parts[0].link.lost = true;
  CHECK(most.count.too_few());
  CHECK(most.count.until() == instant{});
}

TEST_CASE("joint count: what was lost before the grant is told is no hold", "[unit][joint]") {
  shown_part one;
  one.link.lost = true;
  joint_count<shown_part*> count(1);
  CHECK_FALSE(count.begin({&one}));
}

TEST_CASE("joint count: a late member counts, unless the hold is over", "[unit][joint]") {
  counted_hold most(2, 2);
  shown_part late;
  late.link.show(instant(2h));
  CHECK(most.count.add(&late));
  CHECK(most.count.until() == instant(1h) + 1s);
  most.count.lose();
  CHECK_FALSE(most.count.add(&late));
  CHECK(most.count.until() == instant{});
  CHECK(most.count.take().size() == 3);
}

TEST_CASE("joint trust: while an extension is under way the longer drift is taken off", "[unit][joint]") {
  hold_link link;
  link.show(instant(1h));
  joint_trust trust(link, 5ms);
  trust.extending(9ms);
  trust.extending(3ms);
  CHECK(trust.until() == instant(1h) - 9ms);
  trust.extended(9ms, true);
  CHECK(trust.until() == instant(1h) - 9ms);
  trust.extended(3ms, true);
  CHECK(trust.until() == instant(1h) - 3ms);
}

TEST_CASE("joint answer: a release says the best that a quorum found", "[unit][joint]") {
  auto const release = operation::type::release;
  joint_answer answer(release, 3, 2, true);
  CHECK_FALSE(answer.add(answer_to(release, release_result::released)));
  CHECK_FALSE(answer.add(answer_to(release, release_result::released, errc::lease_lost)));
  CHECK(answer.add(answer_to(release, release_result::still_held)));
  operation told;
  answer.fill(told);
  CHECK(told.released == release_result::still_held);
  CHECK_FALSE(told.error);
}

TEST_CASE("joint answer: where all are needed all are heard, and the worst is said", "[unit][joint]") {
  auto const release = operation::type::release;
  joint_answer answer(release, 2, 2, false);
  CHECK_FALSE(answer.add(answer_to(release, release_result::released, errc::connection_lost)));
  CHECK(answer.add(answer_to(release, release_result::released)));
  CHECK_FALSE(answer.add(answer_to(release, release_result::released)));
  operation told;
  answer.fill(told);
  CHECK(told.released == release_result::unknown);
  CHECK(told.error == errc::connection_lost);
}
