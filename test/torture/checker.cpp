#include <latchkey/error.hpp>
#include <torture/checker.hpp>

#include <algorithm>
#include <cstdio>
#include <unordered_map>

namespace latchkey::torture {

std::string in_ms(std::int64_t nanoseconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3f ms", static_cast<double>(nanoseconds) / 1e6);
  return text;
}

verdict check(run_history const& run, allowances const& may) {
  verdict out;
  auto const all = assemble(run, may);
  for (auto const& one : all.sections) {
    if (one.granted == 0) continue;
    ++out.sections;
    ++out.of_kind[torture_kinds()[one.kind].name];
  }
  check_exclusion(all, out);
  check_tokens(all, out);
  check_latches(all, out);
  check_losses(all, out);
  check_calls(all, out);
  check_shares(all, out);
  check_storms(all, out);
  check_pools(run, all, out);
  check_remains(run, out);
  return out;
}

std::string verdict::last_line() const {
  auto const part = [](char const* name, std::uint64_t value) { return name + ("=" + std::to_string(value)); };
  return part("sections", sections) + " " + part("violations", violations) + " " +
         part("lost_reported", lost_reported) + " " + part("lost_unreported", lost_unreported) + " " +
         part("hung", hung) + " " + part("leaked", leaked) + " " + part("late", late) + " " + part("storm", storm) +
         " " + part("starved", starved);
}

namespace {

class process_reader {
 public:
  process_reader(process_history const& of, assembled& into) : of_(of), into_(into) {}

  void read(record const& line) {
    switch (line.what) {
      case what::ask: return ask(line);
      case what::granted: return granted(line);
      case what::refused: return refused(line);
      case what::leave: return leave(line);
      case what::released: return released(line);
      case what::begin: return begin(line);
      case what::end: return end(line);
      case what::disconnected: into_.disconnects[&of_].push_back(line.time); return;
      case what::pause: into_.pauses[of_.index].emplace_back(line.a, line.b); return;
      case what::over: into_.over.insert(&of_); return;
      default: return;
    }
  }

 private:
  section& of(record const& line) { return into_.sections[sections_.at(line.section)]; }

  void ask(record const& line) {
    sections_[line.section] = into_.sections.size();
    auto& one = into_.sections.emplace_back();
    one.of = &of_;
    one.number = line.section;
    one.slot = line.slot;
    one.kind = line.kind;
    one.lock = line.lock;
    one.mode = line.code;
    one.asked = line.time;
    one.wait = line.a;
    one.lease = line.b;
    one.ask_limit = line.c;
  }
  void granted(record const& line) {
    of(line).granted = line.time;
    of(line).token = static_cast<std::uint64_t>(line.a);
  }
  void refused(record const& line) {
    of(line).refused = line.time;
    of(line).code = line.code;
  }
  void leave(record const& line) {
    auto& one = of(line);
    one.left = line.time;
    one.trusted = line.a;
    one.longest = line.b;
    one.release_limit = line.c;
    one.told = line.code;
  }
  void released(record const& line) {
    of(line).released = line.time;
    of(line).code = line.code;
  }
  void begin(record const& line) {
    calls_[line.section] = into_.calls.size();
    auto& one = into_.calls.emplace_back();
    one.of = &of_;
    one.number = line.section;
    one.kind = line.kind;
    one.lock = line.lock;
    one.which = static_cast<call>(line.code);
    one.begun = line.time;
    one.limit = line.c;
  }
  void end(record const& line) {
    auto& one = into_.calls[calls_.at(line.section)];
    one.ended = line.time;
    one.error = line.code;
    one.value = line.a;
  }

  process_history const& of_;
  assembled& into_;
  std::unordered_map<std::uint64_t, std::size_t> sections_, calls_;
};

std::int64_t covered(std::vector<interval> const& sorted, std::int64_t from, std::int64_t to) {
  std::int64_t sum = 0;
  auto at = std::partition_point(sorted.begin(), sorted.end(), [&](auto const& one) { return one.second <= from; });
  for (; at != sorted.end() && at->first < to; ++at) sum += std::min(to, at->second) - std::max(from, at->first);
  return sum;
}

// Each moment once.
void put_together(std::vector<interval>& some) {
  std::sort(some.begin(), some.end());
  std::size_t kept = 0;
  for (auto const& one : some)
    if (kept > 0 && one.first <= some[kept - 1].second)
      some[kept - 1].second = std::max(some[kept - 1].second, one.second);
    else
      some[kept++] = one;
  some.resize(kept);
}

void read_coordinator(run_history const& run, assembled& made) {
  std::map<std::pair<std::int64_t, std::int64_t>, process_history const*> workers;
  for (auto const& one : run.workers) workers[{one.index, one.incarnation}] = &one;
  auto const worker = [&](record const& line) {
    auto const found = workers.find({line.a, line.b});
    return found == workers.end() ? nullptr : found->second;
  };
  for (auto const& line : run.coordinator) {
    if (line.what == what::pause) made.pauses[static_cast<int>(line.c)].emplace_back(line.a, line.b);
    if (line.what == what::stall) made.stalls.emplace_back(line.a, line.b);
    if (line.what == what::outage) made.outages[static_cast<int>(line.c)].emplace_back(line.a, line.b);
    if (line.what == what::deletion) made.deletions[{line.kind, line.lock}].push_back({line.a, line.b, line.code != 0});
    if (line.what == what::kill && worker(line)) made.killed[worker(line)] = line.time;
    if (line.what == what::fault) made.faults.emplace_back(line.a, line.b);
    if (line.what == what::connects) made.connects.push_back({line.a, line.b, line.c, static_cast<int>(line.lock)});
    if (line.what == what::overdue && worker(line)) made.overdue.insert(worker(line));
  }
  std::sort(made.faults.begin(), made.faults.end());
  put_together(made.stalls);
  for (auto& [index, some] : made.pauses) {  // a machine that stands still is noticed by its processes, too
    some.insert(some.end(), made.stalls.begin(), made.stalls.end());
    put_together(some);
  }
  for (auto& [server, some] : made.outages) std::sort(some.begin(), some.end());
}

}  // namespace

std::string section::name() const {
  return "worker " + std::to_string(of->index) + "." + std::to_string(of->incarnation) + " section " +
         std::to_string(number) + " of " + lock_name(kind, lock);
}

std::map<lock_id, std::vector<section const*>> assembled::by_lock() const {
  std::map<lock_id, std::vector<section const*>> made;
  for (auto const& one : sections)
    if (one.granted != 0) made[{one.kind, one.lock}].push_back(&one);
  for (auto& [lock, some] : made)
    std::sort(some.begin(), some.end(), [](auto const* x, auto const* y) { return x->granted < y->granted; });
  return made;
}

std::int64_t assembled::net(process_history const& of, std::int64_t from, std::int64_t to) const {
  auto const found = pauses.find(of.index);
  return to - from - covered(found == pauses.end() ? stalls : found->second, from, to);
}

assembled assemble(run_history const& run, allowances const& may) {
  assembled made;
  made.may = may;
  for (auto const& one : run.workers) {
    process_reader reader(one, made);
    for (auto const& line : one.lines) reader.read(line);
  }
  read_coordinator(run, made);
  return made;
}

namespace {

constexpr std::int64_t long_enough = second;          // a streak ends after some milliseconds
constexpr std::int64_t most_of_a_turn = second / 10;  // one long hold is no streak, however many short ones follow it
constexpr int often_enough = 100;                     // grants in a row: what is left to chance does not come to that

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

// Of the turns of one process between two times: how many, and how long they took.
std::pair<int, std::int64_t> turns(std::vector<section const*> const& some, process_history const* of,
                                   std::int64_t from, std::int64_t to) {
  std::pair<int, std::int64_t> all{0, 0};
  std::int64_t before = from;
  for (auto const* grant : some) {
    if (grant->of != of || grant->granted <= from || grant->granted >= to) continue;
    ++all.first;
    all.second += std::min(grant->granted - before, most_of_a_turn);
    before = grant->granted;
  }
  return all;
}

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
        auto const [passed, took] = turns(some, one.of, from, to);
        if (passed < often_enough || took < long_enough) continue;
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

namespace {

// Did its release end with an error of the server's, after which nothing has changed? The workers do not repeat it.
bool release_refused(section const& one) {
  auto const with = [&one](errc error) {
    return one.ended_as(
        static_cast<outcome>(static_cast<std::uint32_t>(outcome::error) + static_cast<std::uint32_t>(error)));
  };
  return with(errc::server_error) || with(errc::auth_failed);  // NOAUTH is among the words that servers say
}

// May this section have kept its permit for ever?
bool may_keep(assembled const& all, section const& one) {
  if (release_refused(one)) return true;
  if (!all.killed.contains(one.of)) return false;
  bool const refused_for_sure = one.refused != 0 && one.code == 0;
  return !refused_for_sure && !one.ended_as(outcome::released);
}

}  // namespace

void check_pools(run_history const& run, assembled const& all, verdict& out) {
  std::map<lock_id, std::int64_t> kept;
  for (auto const& one : all.sections)
    if (may_keep(all, one)) ++kept[{one.kind, one.lock}];
  for (auto const& line : run.coordinator) {
    if (line.what != what::pool) continue;
    auto const name = lock_name(line.kind, line.lock) + " was left with " + std::to_string(line.a) + " permits";
    auto const least = permits - kept[{line.kind, line.lock}];
    if (line.a > permits) tell(out, out.violations, "VIOLATION: " + name);
    if (line.a < least) tell(out, out.leaked, "LEAKED: " + name + ", not " + std::to_string(least));
  }
}

}  // namespace latchkey::torture
