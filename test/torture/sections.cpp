#include <torture/sections.hpp>

#include <algorithm>
#include <unordered_map>

namespace latchkey::torture {

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
  for (auto& [index, some] : made.pauses) std::sort(some.begin(), some.end());
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
  auto const stopped = found == pauses.end() ? 0 : covered(found->second, from, to);
  return to - from - stopped - covered(stalls, from, to);
}

assembled assemble(run_history const& run) {
  assembled made;
  for (auto const& one : run.workers) {
    process_reader reader(one, made);
    for (auto const& line : one.lines) reader.read(line);
  }
  read_coordinator(run, made);
  return made;
}

}  // namespace latchkey::torture
