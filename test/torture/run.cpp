#include <torture/checker.hpp>
#include <torture/kinds.hpp>
#include <torture/nemesis.hpp>
#include <torture/run.hpp>
#include <torture/topology.hpp>

#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <vector>

namespace latchkey::torture {

namespace {

volatile std::sig_atomic_t asked = 0;

}  // namespace

void end_when_asked() {
  std::signal(SIGTERM, [](int) { asked = 1; });
}

bool asked_to_end() { return asked != 0; }

namespace {

constexpr int width = 20;

template <class Numbers>
std::uint64_t sum(Numbers const& numbers) {
  std::uint64_t made = 0;
  for (auto const& one : numbers) made += one.load(std::memory_order_relaxed);
  return made;
}

}  // namespace

std::string in_words(std::map<std::string, int> const& counts) {
  std::vector<std::pair<int, std::string>> sorted;
  for (auto const& [name, count] : counts) sorted.emplace_back(-count, name);
  std::sort(sorted.begin(), sorted.end());
  std::string made;
  for (auto const& [count, name] : sorted) made += (made.empty() ? "" : ", ") + name + " " + std::to_string(-count);
  return made.empty() ? "none" : made;
}

progress::progress(double minutes) : terminal_(::isatty(1) == 1), length_(static_cast<std::int64_t>(minutes * 60e9)) {}

void progress::update(board const& shared, std::map<std::string, int> const& struck) {
  auto const at = now();
  if (at < next_) return;
  auto const passed = at - began_;
  next_ = at + (terminal_ ? second / 4 : passed < 60 * second ? 5 * second : 30 * second);
  int faults = 0;
  for (auto const& [name, count] : struck) faults += count;
  auto const sections = sum(shared.sections);
  auto const seconds = static_cast<unsigned>(passed / second);
  char text[160];
  std::snprintf(text, sizeof text, "[%2u:%02u] %llu sections, %.0f per second; %d faults; %llu holds lost",
                seconds / 60, seconds % 60, static_cast<unsigned long long>(sections),
                static_cast<double>(sections) * 1e9 / static_cast<double>(std::max<std::int64_t>(passed, second)),
                faults, static_cast<unsigned long long>(sum(shared.lost)));
  if (terminal_) {
    auto const full = static_cast<std::size_t>(width * std::min(passed, length_) / std::max<std::int64_t>(length_, 1));
    std::printf("\r\x1b[K[%s%s] %s", std::string(full, '#').c_str(), std::string(width - full, '.').c_str(), text);
  } else {
    std::printf("%s\n", text);
  }
  std::fflush(stdout);
}

void progress::end() const {
  if (terminal_) std::printf("\r\x1b[K");
}

namespace {

// What has no lease and is there to stay: counters of tokens, permits, and latches whose parties were killed.
bool stays(std::string_view key) {
  return key.starts_with("redisson_lock_token:") || key.starts_with("semaphore-") || key.starts_with("latch-") ||
         key.starts_with("permit_semaphore-");
}

// By these keys repeated requests are recognised: 20 s, which is longer than a lease and said in the manual.
bool is_mark(std::string_view key) { return key.starts_with("latchkey_request:"); }

constexpr std::int64_t mark_time = 20'000;

std::vector<std::string> keys_like(test::raw_redis& admin, std::string const& pattern) {
  std::vector<std::string> found;
  std::string cursor = "0";
  do {
    auto const answer = admin.ok("SCAN", cursor, "MATCH", pattern, "COUNT", 1'000);
    cursor = answer.elements.at(0).text;
    for (auto const& one : answer.elements.at(1).elements) found.push_back(one.text);
  } while (cursor != "0");
  return found;
}

}  // namespace

std::vector<std::string> wrong_keys(test::raw_redis& admin) {
  std::vector<std::string> found;
  for (auto const& one : keys_like(admin, "*")) {
    if (stays(one)) continue;
    auto const left = admin.integer("PTTL", one);
    if (left == -2 || (is_mark(one) && left >= 0 && left <= mark_time)) continue;
    found.push_back("the key " + one + ", time to live " + std::to_string(left) + " ms");
  }
  return found;
}

namespace {

// Permits whose lease is over come back when somebody asks.
std::vector<std::string> missing_permits(test::redis_server const& server, test::raw_redis& admin) {
  std::vector<std::string> found;
  client const own(server.uri());
  for (auto const& one : keys_like(admin, "permit_semaphore-*"))
    if (auto const free = own.get_permit_semaphore(one).available_permits(); free != permits)
      found.push_back(one + " has " + std::to_string(free) + " permits free");
  return found;
}

std::vector<std::string> look(test::redis_server const& server) {
  auto admin = server.admin();
  auto found = missing_permits(server, admin);
  auto const more = wrong_keys(admin);
  found.insert(found.end(), more.begin(), more.end());
  for (auto const& one : admin.ok("PUBSUB", "CHANNELS").elements) found.push_back("a subscription of " + one.text);
  if (auto const others = admin.clients("user=worker"); others > 0)
    found.push_back(std::to_string(others) + " connections of workers");
  return found;
}

// The checker knows how many of their permits killed processes took with them.
void note_pools(stage& on) {
  auto admin = on.server(0).admin();
  std::string const prefix = "semaphore-";
  auto const kind = [] {
    auto const& all = torture_kinds();
    return std::find_if(all.begin(), all.end(), [](auto const& one) { return one.name == "semaphore"; }) - all.begin();
  }();
  for (auto const& one : keys_like(admin, prefix + "*")) {
    record line;
    line.what = what::pool;
    line.kind = static_cast<std::uint8_t>(kind);
    line.lock = static_cast<std::uint32_t>(std::stoul(one.substr(prefix.size())));
    line.a = std::stoll(admin.text("GET", one));
    on.log().write(line);
  }
}

}  // namespace

std::vector<std::string> find_remains(stage& on) {
  // What was killed with a request on the way may hold for one lease of up to two watchdog times, and in a queue for
  // as long as the waiters of a fair lock are given.
  auto const end = now() + on.run().lease.count() * 5 * ms;
  std::vector<std::string> found;
  do {
    std::this_thread::sleep_for(milliseconds(50));
    found.clear();
    for (int s = 0; s < on.servers(); ++s) {
      auto some = look(on.server(s));
      for (auto& one : some) found.push_back("server " + std::to_string(s) + ": " + std::move(one));
    }
  } while (!found.empty() && now() < end);
  note_pools(on);
  return found;
}

namespace {

constexpr std::int64_t tick = 5 * ms;
constexpr std::int64_t longest_tick = 200 * ms;

class whole_run {
 public:
  whole_run(options const& run, std::string const& folder)
      : run_(run), shared_(map_board(board_file(folder))), on_(run, folder), bad_(on_, run.nemeses, run.seed) {}

  verdict play() {
    std::string why;
    try {
      attack();
      finish();
      write_lines(left_behind_file(on_.folder()), find_remains(on_));
    } catch (std::runtime_error const& error) {
      why = error.what();
      for (int i = 0; i < on_.workers(); ++i) on_.kill(i);
    }
    write_lines(accidents_file(on_.folder()), on_.accidents());
    shown_.end();
    auto found = check(read_run(on_.folder()));
    if (why.empty()) return found;
    found.whole = false;
    found.findings.push_back("ENDED EARLY: what was done until then is judged, and nothing after it: " + why);
    return found;
  }

  int faults() const {
    int sum = 0;
    for (auto const& [name, count] : bad_.struck()) sum += count;
    return sum;
  }
  std::string struck() const { return in_words(bad_.struck()); }

 private:
  void attack() {
    for (int i = 0; i < on_.workers(); ++i) on_.spawn(i);
    auto const end = now() + static_cast<std::int64_t>(run_.minutes * 60e9);
    while (now() < end && !asked_to_end()) {
      auto const before = now();
      bad_.step();
      on_.running();
      shown_.update(shared_, bad_.struck());
      idle();
      note_stall(before);
    }
  }

  // What a nemesis takes is its own time, not the machine's.
  void idle() {
    auto const before = now();
    std::this_thread::sleep_for(std::chrono::nanoseconds(tick));
    note_stall(before);
  }
  void note_stall(std::int64_t before) {
    if (now() - before < longest_tick + tick) return;
    record line;
    line.what = what::stall;
    line.a = before;
    line.b = now();
    on_.log().write(line);
  }

  // Heals all, and gives the workers the time in which each of them takes each lock once more.
  void finish() {
    bad_.heal();
    shared_.now_is = board::last_round;
    auto const end = now() + 60 * second + run_.lease.count() * 10 * ms;
    while (on_.running() > 0 && now() < end) {
      shown_.update(shared_, bad_.struck());
      idle();
    }
    on_.end_overdue();
  }

  options const& run_;
  board& shared_;
  stage on_;
  nemeses bad_;
  progress shown_{run_.minutes};
};

void tell(verdict const& found, std::string const& folder, options const& run) {
  for (auto const& line : found.findings) std::printf("%s\n", line.c_str());
  bool const expected = found.good() || run.broken != broken::not_at_all;
  if (expected && !run.keep) {
    std::filesystem::remove_all(folder);
    return;
  }
  std::printf(
      "The histories are in %s\n  in words:  scripts/torture --show %s\n  check again: scripts/torture --check %s\n",
      folder.c_str(), folder.c_str(), folder.c_str());
  if (!found.good()) std::printf("  run again:   %s\n", command_for(run).c_str());
}

void tell_figures(verdict const& found) {
  std::string kinds;
  for (auto const& [name, count] : found.of_kind)
    kinds += (kinds.empty() ? "" : ", ") + name + " " + std::to_string(count);
  std::printf("sections by kind: %s\nacquires that were refused or failed: %llu; overlaps that a stranger made: %llu\n",
              kinds.c_str(), static_cast<unsigned long long>(found.refused),
              static_cast<unsigned long long>(found.excused));
}

}  // namespace

std::string new_folder() {
  auto path = (std::filesystem::temp_directory_path() / "latchkey-torture-XXXXXX").string();
  if (::mkdtemp(path.data()) == nullptr) throw std::runtime_error("cannot make a folder like " + path);
  return path;
}

void keep_servers_in_memory() {
  std::error_code ignored;
  if (std::filesystem::is_directory("/dev/shm", ignored) && ::access("/dev/shm", W_OK) == 0)
    ::setenv("TMPDIR", "/dev/shm", 1);
}

int run_torture(options const& run) {
  auto const folder = new_folder();
  keep_servers_in_memory();
  std::printf("%s\nhistories: %s\n", command_for(run).c_str(), folder.c_str());
  std::fflush(stdout);
  auto const began = now();
  verdict found;
  {
    whole_run whole(run, folder);
    found = whole.play();
    std::printf("%d faults in %.0f s: %s\n", whole.faults(), static_cast<double>(now() - began) / 1e9,
                whole.struck().c_str());
  }
  tell_figures(found);
  tell(found, folder, run);
  std::printf("%s\n", found.last_line().c_str());
  return found.good() ? 0 : 1;
}

int check_again(options const& run) {
  bool const moves = !run.topology.empty();
  auto const found = check(read_run(run.check), {.counts = moves, .holds = moves && run.synced >= 0});
  for (auto const& line : found.findings) std::printf("%s\n", line.c_str());
  tell_figures(found);
  std::printf("%s\n", found.last_line().c_str());
  return found.good() ? 0 : 1;
}

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

std::string fault_name(std::uint32_t code) {
  return code < first_mishap ? nemesis_names().at(code) : name_of(static_cast<mishap>(code - first_mishap));
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
    case what::fault: return "FAULT " + fault_name(line.code) + " (" + std::to_string(line.c) + ") until " + at(line.b);
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
