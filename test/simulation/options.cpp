#include <simulation/options.hpp>
#include <support/command_line.hpp>

#include <algorithm>
#include <cstdio>
#include <string_view>

namespace latchkey::simulation {

namespace {

constexpr char const* help = R"(Usage: scripts/simulate [OPTION...]
       scripts/simulate --scale [OPTION...]   many clients, a large cluster, one failover (--scale --help)

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
  --without drift,jitter,split,turns
                 clocks of one rate, bytes that take equally long, bytes that arrive whole, config::local_turns = false

A failure prints its seed and the command that plays it again. The last line gives the figures; of the violations, late
are calls beyond their time, storm what a client costs a sick server, shown what leases show and is not so, starved
waiters that are passed for too long. Exit code: 0 no rule was broken, 1 some rule was or --compare found a difference,
2 wrong usage.
)";

bool read_list(std::string_view word, std::vector<std::uint32_t>& out) {
  for (auto const& part : test::between_commas(word))
    if (!test::read_number(part, out.emplace_back())) return false;
  std::sort(out.begin(), out.end());
  return true;
}

bool read_without(std::string_view word, options& out) {
  for (auto const& part : test::between_commas(word)) {
    bool* const what = part == "drift"    ? &out.drift
                       : part == "jitter" ? &out.jitter
                       : part == "split"  ? &out.split
                       : part == "turns"  ? &out.turns
                                          : nullptr;
    if (!what) return false;
    *what = false;
  }
  return !word.empty();
}

bool read_kind(std::string_view word, options& out) {
  out.kinds.clear();
  for (auto const& kind : simulated_kinds())
    if (word == "all" || kind->name == word) out.kinds.push_back(kind.get());
  return !out.kinds.empty();
}

}  // namespace

std::optional<int> read_options(int count, char const* const* words, options& out) {
  read_kind("all", out);
  constexpr std::size_t most_clients = 8;
  test::command_line all("scripts/simulate");
  all.number("--seeds", out.seeds, std::uint64_t{1})
      .value("--minutes", [&](auto word) { return test::read_number(word, out.minutes) && out.minutes > 0; })
      .number("--seed", out.seed)
      .value("--kind", [&](auto word) { return read_kind(word, out); })
      .number("--clients", out.clients, std::size_t{1}, most_clients)
      .number("--steps", out.steps, 1u)
      .value("--only", [&](auto word) { return read_list(word, out.only.emplace()); })
      .number("--until", out.until, moment{0})
      .value("--without", [&](auto word) { return read_without(word, out); })
      .text("--record", out.record)
      .text("--compare", out.compare)
      .flag("--shrink", out.shrink)
      .flag("--trace", out.trace);
  auto const code = all.read(count, words, [] {
    std::string names;
    for (auto const& kind : simulated_kinds()) names += (names.empty() ? "" : ", ") + kind->name;
    std::printf(help, names.c_str());
  });
  if (code) return code;
  if (out.only && (out.until == endless || out.minutes > 0)) return all.wrong("--only needs --until, and no --minutes");
  bool const traced = !out.record.empty() || !out.compare.empty();
  if (traced && (out.only || out.minutes > 0))
    return all.wrong("--record and --compare play whole runs, by their number");
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
  made.turns = from.turns;
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
  for (auto const& [on, name] :
       {std::pair(run.drift, "drift"), {run.jitter, "jitter"}, {run.split, "split"}, {run.turns, "turns"}})
    if (!on) without += (without.empty() ? "" : ",") + std::string(name);
  if (!without.empty()) made += " --without " + without;
  if (!run.only) return made;
  std::string list;
  for (auto number : *run.only) list += (list.empty() ? "" : ",") + std::to_string(number);
  return made + " --only " + (list.empty() ? "''" : list) + " --until " + std::to_string(run.end);
}

}  // namespace latchkey::simulation
