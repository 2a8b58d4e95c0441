#include <torture/nemesis.hpp>
#include <torture/rules.hpp>
#include <torture/run.hpp>

#include <algorithm>
#include <cstdio>

namespace latchkey::torture {

namespace {

struct shown {
  record line;
  std::string who;
};

std::string outcome_text(std::uint32_t code) {
  static char const* const names[] = {"released", "still held", "expired", "unknown", "dropped"};
  if (code < std::size(names)) return names[code];
  return "error " + std::to_string(code - static_cast<std::uint32_t>(outcome::error));
}

std::string text_of(record const& line, std::int64_t first) {
  auto const at = [&](std::int64_t time) { return in_ms(time - first); };
  auto const lock = lock_name(line.kind, line.lock);
  auto const number = std::to_string(line.section) + " ";
  switch (line.what) {
    case what::born: return "begins, pid " + std::to_string(line.c);
    case what::ask:
      return number + "asks for " + lock + ((line.code & mode::shared) ? " to read" : "") + ", waits " + in_ms(line.a) +
             (line.b != 0 ? ", lease " + in_ms(line.b) : "");
    case what::granted: return number + "has " + lock + (line.a != 0 ? ", token " + std::to_string(line.a) : "");
    case what::refused: return number + "does not get " + lock + " (" + std::to_string(line.code) + ")";
    case what::leave:
      return number + "leaves " + lock + ", trusted until " + (line.a != 0 ? at(line.a) : "never") +
             ((line.code & told_by_held) ? ", held() false" : "") +
             ((line.code & told_by_lost) ? ", lost() told" : "") +
             ((line.code & told_silently) ? ", lost() SILENT" : "");
    case what::released: return number + lock + ": " + outcome_text(line.code);
    case what::begin: return number + "call " + std::to_string(line.code) + " on " + lock;
    case what::end: return number + "call ended (" + std::to_string(line.code) + "), " + std::to_string(line.a);
    case what::disconnected: return "lost a connection";
    case what::rest: return "at rest";
    case what::over: return "ends";
    case what::fault:
      return "FAULT " + nemesis_names().at(line.code) + " (" + std::to_string(line.c) + ") until " + at(line.b);
    case what::deletion: return "STRANGER removes " + lock + " until " + at(line.b) + (line.code ? ", for sure" : "");
    case what::pause: return "PAUSE of worker " + std::to_string(line.c) + " until " + at(line.b);
    case what::kill: return "KILL of worker " + std::to_string(line.a) + "." + std::to_string(line.b);
    case what::outage: return "OUTAGE of server " + std::to_string(line.c) + " until " + at(line.b);
    case what::stall: return "the machine stood still until " + at(line.b);
    case what::overdue: return "worker " + std::to_string(line.a) + " is overdue";
    case what::connects:
      return "CONNECTS of worker " + std::to_string(line.lock) + " until " + at(line.b) + ": " + std::to_string(line.c);
    case what::pool: return lock + " has " + std::to_string(line.a) + " permits";
  }
  return "?";
}

// What has a beginning stands in the order of that.
std::int64_t place_of(record const& line) {
  bool const begins = line.what == what::fault || line.what == what::deletion || line.what == what::pause ||
                      line.what == what::outage || line.what == what::stall || line.what == what::connects;
  return begins ? line.a : line.time;
}

}  // namespace

int show(std::string const& folder) {
  auto const run = read_run(folder);
  std::vector<shown> lines;
  for (auto const& one : run.workers)
    for (auto const& line : one.lines)
      lines.push_back({line, std::to_string(one.index) + "." + std::to_string(one.incarnation)});
  for (auto const& line : run.coordinator) lines.push_back({line, "-"});
  std::stable_sort(lines.begin(), lines.end(),
                   [](auto const& a, auto const& b) { return place_of(a.line) < place_of(b.line); });
  if (lines.empty()) return 0;
  auto const first = place_of(lines.front().line);
  for (auto const& one : lines)
    std::printf("%14s %6s %3u  %s\n", in_ms(place_of(one.line) - first).c_str(), one.who.c_str(), one.line.slot,
                text_of(one.line, first).c_str());
  return 0;
}

}  // namespace latchkey::torture
