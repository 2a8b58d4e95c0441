#include <torture/rules.hpp>

#include <algorithm>
#include <unordered_set>

namespace latchkey::torture {

namespace {

// Did a stranger remove the holder of `earlier`, so that `later` was granted before that holder had to know?
bool excused(std::vector<deletion> const& some, section const& earlier, section const& later) {
  return std::any_of(some.begin(), some.end(), [&](deletion const& one) {
    return one.end >= earlier.asked && one.begin <= later.granted && later.granted <= one.end + earlier.longest;
  });
}

void alone_or_readers(std::vector<section const*> const& some, std::vector<deletion> const& deleted, verdict& out) {
  std::vector<section const*> inside;
  for (auto const* later : some) {
    if (!later->was_trusted()) continue;
    std::erase_if(inside, [&](auto const* one) { return one->trusted <= later->granted; });
    for (auto const* earlier : inside) {
      if (!exclusive(*earlier, *later)) continue;
      if (excused(deleted, *earlier, *later))
        ++out.excused;
      else
        tell(out, out.violations,
             "VIOLATION: two trusted holders for " +
                 in_ms(std::min(earlier->trusted, later->trusted) - later->granted) + ": " + earlier->name() + " and " +
                 later->name());
    }
    inside.push_back(later);
  }
}

void at_most_permits(std::vector<section const*> const& some, verdict& out) {
  std::vector<section const*> inside;
  for (auto const* later : some) {
    if (!later->was_trusted()) continue;
    std::erase_if(inside, [&](auto const* one) { return one->trusted <= later->granted; });
    inside.push_back(later);
    if (inside.size() > permits)
      tell(out, out.violations,
           "VIOLATION: " + std::to_string(inside.size()) + " trusted holders of " + std::to_string(permits) +
               " permits, the last one: " + later->name());
  }
}

}  // namespace

void check_exclusion(assembled const& all, verdict& out) {
  static std::vector<deletion> const none;
  for (auto const& [lock, some] : all.by_lock()) {
    auto const& kind = torture_kinds()[lock.first];
    auto const found = all.deletions.find(lock);
    if (kind.who == rule::permits)
      at_most_permits(some, out);
    else if (kind.who != rule::rounds)
      alone_or_readers(some, found == all.deletions.end() ? none : found->second, out);
  }
}

void check_tokens(assembled const& all, verdict& out) {
  for (auto const& [lock, granted] : all.by_lock()) {
    if (!torture_kinds()[lock.first].tokens) continue;
    auto asked = granted;
    std::sort(asked.begin(), asked.end(), [](auto const* x, auto const* y) { return x->asked < y->asked; });
    section const* highest = nullptr;
    std::unordered_set<std::uint64_t> seen;
    auto known = granted.begin();
    for (auto const* one : asked) {
      if (one->token == 0 || !seen.insert(one->token).second)
        tell(out, out.violations, "VIOLATION: the token " + std::to_string(one->token) + " twice: " + one->name());
      for (; known != granted.end() && (*known)->granted < one->asked; ++known)
        if (!highest || (*known)->token > highest->token) highest = *known;
      if (highest && one->token < highest->token)
        tell(out, out.violations,
             "VIOLATION: the token " + std::to_string(one->token) + " of " + one->name() + " is below " +
                 std::to_string(highest->token) + " of the earlier " + highest->name());
    }
  }
}

void check_latches(assembled const& all, verdict& out) {
  std::map<lock_id, other_call const*> set;
  std::map<lock_id, std::vector<std::int64_t>> counted;
  for (auto const& one : all.calls) {
    if (one.which == call::set_count && one.ended != 0 && one.value > 0) set[{one.kind, one.lock}] = &one;
    if (one.which == call::count_down) counted[{one.kind, one.lock}].push_back(one.begun);
  }
  for (auto& [lock, times] : counted) std::sort(times.begin(), times.end());
  for (auto const& one : all.sections) {
    if (torture_kinds()[one.kind].who != rule::rounds || one.granted == 0) continue;
    auto const found = set.find({one.kind, one.lock});
    if (found == set.end() || found->second->ended > one.asked) continue;  // zero before the round began
    auto const& times = counted[{one.kind, one.lock}];
    auto const before = std::upper_bound(times.begin(), times.end(), one.granted) - times.begin();
    if (before < found->second->value)
      tell(out, out.violations,
           "VIOLATION: passed a latch after " + std::to_string(before) + " of " + std::to_string(found->second->value) +
               " had counted it down: " + one.name());
  }
}

}  // namespace latchkey::torture
