#include <torture/checker.hpp>

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

void alone_or_readers(std::vector<section const*> const& some, std::vector<deletion> const& deleted, bool documented,
                      verdict& out) {
  std::vector<section const*> inside;
  for (auto const* later : some) {
    if (!later->was_trusted()) continue;
    std::erase_if(inside, [&](auto const* one) { return one->trusted <= later->granted; });
    for (auto const* earlier : inside) {
      if (!exclusive(*earlier, *later)) continue;
      if (excused(deleted, *earlier, *later))
        ++out.excused;
      else
        tell_unless(documented, out, out.violations,
                    "VIOLATION: two trusted holders for " +
                        in_ms(std::min(earlier->trusted, later->trusted) - later->granted) + ": " + earlier->name() +
                        " and " + later->name());
    }
    inside.push_back(later);
  }
}

void at_most_permits(std::vector<section const*> const& some, bool documented, verdict& out) {
  std::vector<section const*> inside;
  for (auto const* later : some) {
    if (!later->was_trusted()) continue;
    std::erase_if(inside, [&](auto const* one) { return one->trusted <= later->granted; });
    inside.push_back(later);
    if (inside.size() > permits)
      tell_unless(documented, out, out.violations,
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
      at_most_permits(some, all.may.counts, out);
    else if (kind.who != rule::rounds)
      alone_or_readers(some, found == all.deletions.end() ? none : found->second, all.may.holds, out);
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
        tell_unless(all.may.holds, out, out.violations,
                    "VIOLATION: the token " + std::to_string(one->token) + " twice: " + one->name());
      for (; known != granted.end() && (*known)->granted < one->asked; ++known)
        if (!highest || (*known)->token > highest->token) highest = *known;
      if (highest && one->token < highest->token)
        tell_unless(all.may.holds, out, out.violations,
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
      tell_unless(all.may.counts, out, out.violations,
                  "VIOLATION: passed a latch after " + std::to_string(before) + " of " +
                      std::to_string(found->second->value) + " had counted it down: " + one.name());
  }
}

namespace {

bool was_told(section const& one) {
  return (one.told & (told_by_held | told_by_lost)) != 0 || one.ended_as(outcome::expired);
}

void unreported(verdict& out, section const& one, std::string const& why) {
  tell(out, out.lost_unreported, "LOST, UNREPORTED: " + one.name() + ": " + why);
}

void trusted_too_long(assembled const& all, section const& one, verdict& out) {
  auto const& kind = torture_kinds()[one.kind];
  if (one.lease != 0 && one.longest == one.lease && one.trusted > one.granted + one.lease)
    unreported(out, one, "trusted " + in_ms(one.trusted - one.granted - one.lease) + " beyond a lease of its own");
  if (kind.servers > 1) return;  // one server says nothing about a majority
  if (auto const found = all.deletions.find({one.kind, one.lock}); found != all.deletions.end())
    for (auto const& gone : found->second)
      if (gone.certain && gone.begin > one.granted && one.trusted > gone.end + one.longest)
        return unreported(out, one, "trusted " + in_ms(one.trusted - gone.end) + " after a stranger had removed it");
  if (auto const found = all.outages.find(0); found != all.outages.end())
    for (auto const& [begin, end] : found->second)
      if (begin > one.granted && one.trusted > begin + one.longest && one.trusted < end)
        return unreported(out, one, "trusted " + in_ms(one.trusted - begin) + " after the server went away");
}

bool connection_lost_in(assembled const& all, section const& one) {
  auto const found = all.disconnects.find(one.of);
  if (found == all.disconnects.end()) return false;
  auto const at = std::lower_bound(found->second.begin(), found->second.end(), one.left);
  return at != found->second.end() && *at <= one.released;
}

// Granted before a stranger removed it, perhaps, and told of that grant only after others were of theirs. Not one that
// was released: its release found it.
bool may_be_older(assembled const& all, section const& one) {
  auto const found = all.deletions.find({one.kind, one.lock});
  return found != all.deletions.end() && !one.ended_as(outcome::released) &&
         std::any_of(found->second.begin(), found->second.end(),
                     [&](deletion const& gone) { return gone.end >= one.asked && gone.begin <= one.granted; });
}

// Whoever was granted while this one had not yet begun its release ended it. A grant that was not trusted when its
// thread came to look says nothing: the thread may have been told late, when the lock had passed on.
void dishonest_release(assembled const& all, std::vector<section const*> const& some, verdict& out) {
  for (std::size_t i = 0; i < some.size(); ++i) {
    auto const& one = *some[i];
    if (!one.ended_as(outcome::released)) continue;
    for (auto next = i + 1; next < some.size() && some[next]->granted < one.left; ++next) {
      if (!some[next]->was_trusted() || may_be_older(all, *some[next])) continue;
      if (!exclusive(one, *some[next]) || connection_lost_in(all, one)) continue;
      unreported(out, one, "released, it was told, when it had been granted to " + some[next]->name());
      break;
    }
  }
}

}  // namespace

void check_losses(assembled const& all, verdict& out) {
  for (auto const& one : all.sections) {
    if (one.granted == 0) continue;
    if (was_told(one)) ++out.lost_reported;
    if (one.told & told_silently) unreported(out, one, "held() was false, and lost() did not say so");
    if (torture_kinds()[one.kind].leased && one.was_trusted()) trusted_too_long(all, one, out);
  }
  for (auto const& [lock, some] : all.by_lock()) {
    auto const& kind = torture_kinds()[lock.first];
    bool const single = kind.who == rule::alone || kind.who == rule::readers_writer;
    if (single && kind.servers == 1 && !all.may.holds) dishonest_release(all, some, out);
  }
}

namespace {

class call_rules {
 public:
  call_rules(assembled const& all, verdict& out) : all_(all), out_(out) {}

  // `end` is 0 if the history does not have it. `due`: what the caller was promised; never above `limit`.
  void look(process_history const& of, std::string const& name, std::int64_t begin, std::int64_t end,
            std::int64_t limit, std::int64_t due) {
    if (end != 0) return too_long(of, name, begin, end, limit, due);
    auto const killed = all_.killed.find(&of);
    if (killed != all_.killed.end()) return too_long(of, name, begin, killed->second, limit, due);
    // Who ended by itself had nothing more to wait for.
    if (all_.over.contains(&of)) tell(out_, out_.hung, "HUNG: " + name + " has no end");
  }

 private:
  void too_long(process_history const& of, std::string const& name, std::int64_t begin, std::int64_t end,
                std::int64_t limit, std::int64_t due) {
    auto const took = all_.net(of, begin, end);
    if (took > due + lateness)
      tell(out_, out_.late, "LATE: " + name + " took " + in_ms(took) + ", and had time for " + in_ms(due));
    if (took > limit + grace)
      tell(out_, out_.hung, "HUNG: " + name + " took " + in_ms(took) + ", which may take " + in_ms(limit));
  }

  assembled const& all_;
  verdict& out_;
};

char const* name_of(call which) {
  switch (which) {
    case call::close: return "close";
    case call::set_count: return "try_set_count";
    case call::count_down: return "count_down";
    case call::set_permits: return "try_set_permits";
  }
  return "?";
}

}  // namespace

void check_calls(assembled const& all, verdict& out) {
  call_rules rules(all, out);
  for (auto const& one : all.sections) {
    rules.look(*one.of, "to acquire, " + one.name() + ",", one.asked, std::max(one.granted, one.refused), one.ask_limit,
               one.wait > 0 ? one.wait : one.ask_limit);
    if (one.left != 0)
      rules.look(*one.of, "to release, " + one.name() + ",", one.left, one.released, one.release_limit,
                 one.release_limit);
    if (one.refused != 0) ++out.refused;
    if ((one.mode & mode::final_round) != 0 && one.refused != 0)
      tell_unless(
          all.may.counts && one.code == 0 && torture_kinds()[one.kind].who == rule::permits, out, out.hung,
          "HUNG: when all was healed, a lock could not be had (" + std::to_string(one.code) + "): " + one.name());
  }
  for (auto const& one : all.calls)
    rules.look(*one.of,
               std::string(name_of(one.which)) + " of worker " + std::to_string(one.of->index) + "." +
                   std::to_string(one.of->incarnation) + ", call " + std::to_string(one.number) + ",",
               one.begun, one.ended, one.limit, one.limit);
  for (auto const* one : all.overdue)
    tell(out, out.hung,
         "HUNG: worker " + std::to_string(one->index) + "." + std::to_string(one->incarnation) + " did not end");
}

void check_remains(run_history const& run, verdict& out) {
  for (auto const& one : run.workers) {
    auto const who = "worker " + std::to_string(one.index) + "." + std::to_string(one.incarnation);
    for (auto const& line : one.lines) {
      if (line.what == what::rest && (line.a != 0 || line.b != 0 || line.c != 0 || line.code != 0))
        tell(out, out.leaked,
             "LEAKED: the clients of " + who + " still had " + std::to_string(line.a) + " holds, " +
                 std::to_string(line.b) + " waiters, " + std::to_string(line.c) + " requests without an outcome, " +
                 std::to_string(line.code) + " subscriptions");
      if (line.what == what::over && line.a > 0)
        tell(out, out.leaked, "LEAKED: " + std::to_string(line.a) + " descriptors of " + who);
    }
  }
  for (auto const& one : run.left_behind) tell(out, out.leaked, "LEAKED: " + one);
  for (auto const& one : run.accidents) tell(out, out.violations, "VIOLATION: " + one);
}

}  // namespace latchkey::torture
