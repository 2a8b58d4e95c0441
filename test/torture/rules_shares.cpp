#include <torture/rules.hpp>

#include <algorithm>

namespace latchkey::torture {

namespace {

constexpr std::int64_t long_enough = second;  // a streak ends after some milliseconds
constexpr int often_enough = 100;             // grants in a row: what is left to chance does not come to that

// Nothing went wrong, and nobody stood still.
bool calm(assembled const& all, section const& waits, std::int64_t from, std::int64_t to) {
  auto const touches = [&](interval const& one) { return one.first < to && one.second > from; };
  auto const quiet = [&](std::vector<interval> const& some) { return std::none_of(some.begin(), some.end(), touches); };
  auto const found = all.pauses.find(waits.of->index);
  return quiet(all.faults) && quiet(all.stalls) && (found == all.pauses.end() || quiet(found->second)) &&
         std::none_of(all.killed.begin(), all.killed.end(),
                      [&](auto const& one) { return one.second > from && one.second < to; });
}

// A streak of grants to one process, and whoever of another one waited from its first to its last.
struct streak {
  process_history const* of = nullptr;
  std::int64_t first = 0, last = 0;
  int grants = 0;
};

}  // namespace

void check_shares(assembled const& all, verdict& out) {
  std::map<lock_id, std::vector<section const*>> waiters;
  for (auto const& one : all.sections)
    if (one.wait >= long_enough) waiters[{one.kind, one.lock}].push_back(&one);
  for (auto const& [lock, some] : all.by_lock()) {
    auto const who = torture_kinds()[lock.first].who;
    if (who == rule::permits || who == rule::rounds || who == rule::readers_writer) continue;
    std::vector<streak> streaks;
    for (auto const* one : some) {
      if (streaks.empty() || streaks.back().of != one->of) streaks.push_back({one->of, one->granted, 0, 0});
      streaks.back().last = one->granted;
      ++streaks.back().grants;
    }
    for (auto const& one : streaks) {
      if (one.grants < often_enough || one.last - one.first < long_enough) continue;
      for (auto const* waits : waiters[lock]) {
        auto const end = std::max(waits->granted, waits->refused);
        auto const from = std::max(waits->asked, one.first), to = std::min(end, one.last);
        if (waits->of == one.of || to - from < long_enough || !calm(all, *waits, from, to)) continue;
        auto const passed = std::count_if(some.begin(), some.end(), [&](section const* grant) {
          return grant->of == one.of && grant->granted > from && grant->granted < to;
        });
        if (passed < often_enough) continue;
        tell(out, out.starved,
             "STARVED: " + waits->name() + " waited " + in_ms(to - from) + " while worker " +
                 std::to_string(one.of->index) + " was granted it " + std::to_string(passed) + " times");
        break;
      }
    }
  }
}

void check_storms(assembled const& all, verdict& out) {
  constexpr std::int64_t most_a_second = 1'000;  // three connections, each after a pause of some milliseconds
  for (auto const& one : all.connects) {
    auto const lasted = one.end - one.begin;
    if (lasted < second || one.count * second <= most_a_second * lasted) continue;
    tell(out, out.storm,
         "STORM: worker " + std::to_string(one.worker) + " connected " + std::to_string(one.count) + " times in " +
             in_ms(one.end - one.begin));
  }
}

}  // namespace latchkey::torture
