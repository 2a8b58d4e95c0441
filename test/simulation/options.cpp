#include <simulation/options.hpp>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <sstream>
#include <string_view>

namespace latchkey::simulation {

namespace {

constexpr char const* help = R"(Usage: scripts/simulate [OPTION...]

Plays whole clients against a modelled Redis in virtual time, with faults, and checks after every step that no rule is
broken. Every run follows from its seed. docs/reliability.md says what is random and what is checked.

  --seeds N      how many runs, one per seed (default 1000)
  --minutes M    run for so long instead (a fraction is allowed)
  --seed S       the first seed (default 1)
  --kind K|all   which lock kind (default all: by turns). Kinds: %s
  --clients C    clients in each run, 1 to 8 (default: 1 to 3, by the seed)
  --steps N      steps of each run before it is brought to its end (default 200)
  --shrink       reduce the first failure to the shortest history that still fails, and tell it
  --trace        tell every history
  --record F     write a number for each step of each run into the folder F
  --compare F    play the runs that F has, and say the first seed and step at which a client does something else;
                 code that only moves leaves no difference. Scripts count by their names; who changes their length
                 records with --without split
  --help

What a failure prints to be played again also uses:
  --only N,N,... only these moves of the seed's plan
  --until T      the end of the moves, in nanoseconds of the simulation
  --without drift,jitter,split
                 clocks of one rate, bytes that take equally long, bytes that arrive whole

A failure prints its seed and the command that plays it again. The last line gives the figures; of the violations, late
are calls beyond their time, storm what a client costs a sick server, shown what leases show and is not so, starved
waiters that are passed for too long. Exit code: 0 no rule was broken, 1 some rule was or --compare found a difference,
2 wrong usage.
)";

template <class Number>
bool read_number(std::string_view word, Number& out) {
  auto const [end, failed] = std::from_chars(word.data(), word.data() + word.size(), out);
  return failed == std::errc() && end == word.data() + word.size();
}

bool read_list(std::string_view word, std::vector<std::uint32_t>& out) {
  for (std::istringstream parts{std::string(word)}; !parts.eof();) {
    std::string part;
    std::getline(parts, part, ',');
    if (part.empty() && word.empty()) break;
    if (!read_number(part, out.emplace_back())) return false;
  }
  std::sort(out.begin(), out.end());
  return true;
}

bool read_without(std::string_view word, options& out) {
  for (std::istringstream parts{std::string(word)}; !parts.eof();) {
    std::string part;
    std::getline(parts, part, ',');
    bool* const what = part == "drift"    ? &out.drift
                       : part == "jitter" ? &out.jitter
                       : part == "split"  ? &out.split
                                          : nullptr;
    if (!what) return false;
    *what = false;
  }
  return true;
}

bool read_kind(std::string_view word, options& out) {
  out.kinds.clear();
  for (auto const& kind : simulated_kinds())
    if (word == "all" || kind->name == word) out.kinds.push_back(kind.get());
  return !out.kinds.empty();
}

bool read_value(std::string_view name, std::string_view value, options& out) {
  if (name == "--seeds") return read_number(value, out.seeds) && out.seeds > 0;
  if (name == "--minutes") return read_number(value, out.minutes) && out.minutes > 0;
  if (name == "--seed") return read_number(value, out.seed);
  if (name == "--kind") return read_kind(value, out);
  if (name == "--clients") return read_number(value, out.clients) && out.clients > 0 && out.clients <= 8;
  if (name == "--steps") return read_number(value, out.steps) && out.steps > 0;
  if (name == "--only") return read_list(value, out.only.emplace());
  if (name == "--until") return read_number(value, out.until) && out.until >= 0;
  if (name == "--record") return !(out.record = value).empty();
  if (name == "--compare") return !(out.compare = value).empty();
  return name == "--without" && read_without(value, out);
}

}  // namespace

std::optional<int> read_options(int count, char const* const* words, options& out) {
  read_kind("all", out);
  for (int i = 1; i < count; ++i) {
    std::string_view const name = words[i];
    if (name == "--help" || name == "-h") {
      std::string names;
      for (auto const& kind : simulated_kinds()) names += (names.empty() ? "" : ", ") + kind->name;
      std::printf(help, names.c_str());
      return 0;
    }
    if (name == "--shrink") {
      out.shrink = true;
    } else if (name == "--trace") {
      out.trace = true;
    } else if (i + 1 >= count || !read_value(name, words[i + 1], out)) {
      std::fprintf(stderr, "scripts/simulate: what is %s%s%s? Try --help\n", words[i], i + 1 < count ? " " : "",
                   i + 1 < count ? words[i + 1] : "");
      return 2;
    } else {
      ++i;
    }
  }
  if (out.only && (out.until == endless || out.minutes > 0)) {
    std::fprintf(stderr, "scripts/simulate: --only needs --until, and no --minutes\n");
    return 2;
  }
  bool const traced = !out.record.empty() || !out.compare.empty();
  if (traced && (out.only || out.minutes > 0)) {
    std::fprintf(stderr, "scripts/simulate: --record and --compare play whole runs, by their number\n");
    return 2;
  }
  return {};
}

run_options run_of(options const& from, simulated_kind const& kind, std::uint64_t seed) {
  run_options made;
  made.kind = &kind;
  made.seed = seed;
  made.clients = from.clients;
  made.steps = from.steps;
  made.drift = from.drift;
  made.jitter = from.jitter;
  made.split = from.split;
  made.only = from.only ? &*from.only : nullptr;
  made.end = from.until;
  made.trace = from.trace;
  return made;
}

std::string command_for(run_options const& run) {
  std::string made = "scripts/simulate --kind " + run.kind->name + " --seeds 1 --seed " + std::to_string(run.seed);
  if (run.clients != 0) made += " --clients " + std::to_string(run.clients);
  if (run.steps != options{}.steps) made += " --steps " + std::to_string(run.steps);
  std::string without;
  for (auto const& [on, name] : {std::pair(run.drift, "drift"), {run.jitter, "jitter"}, {run.split, "split"}})
    if (!on) without += (without.empty() ? "" : ",") + std::string(name);
  if (!without.empty()) made += " --without " + without;
  if (!run.only) return made;
  std::string list;
  for (auto number : *run.only) list += (list.empty() ? "" : ",") + std::to_string(number);
  return made + " --only " + (list.empty() ? "''" : list) + " --until " + std::to_string(run.end);
}

}  // namespace latchkey::simulation
