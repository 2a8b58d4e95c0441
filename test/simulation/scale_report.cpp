#include <simulation/scale.hpp>
#include <support/command_line.hpp>

#include <chrono>
#include <cstdio>
#include <limits>
#include <set>

namespace latchkey::scale {

namespace {

using namespace std::chrono_literals;

constexpr char const* help = R"(Usage: scripts/simulate --scale [OPTION...]

Plays many whole clients, a large cluster and the death of one of its masters in virtual time, and tells for how long
nothing was granted and what its replica was sent when it had been elected. Half of the names are kept by one client
each, the other half are taken in turns by callers of two. Every run follows from its seed. docs/sizing.md has figures.

  --clients N         (default 1000)
  --names N           (default 100000)
  --shards N          masters, each with a replica (default 50)
  --elected-after MS  from the death to the election (default 2000)
  --silent            the master's machine is gone, too: nobody is told that a connection has ended
  --seed S            (default 1)
  --help

Exit code: 0, 1 a holder lost its lock, two had it, a call failed or a name was forgotten, 2 wrong usage.
)";

double ms(nanoseconds of) { return static_cast<double>(of.count()) / 1e6; }

void print(char const* what, sample const& of) {
  std::printf("%-60s %7zu %9.1f %9.1f %9.1f %9.1f\n", what, of.all.size(), of.ms(0), of.ms(0.5), of.ms(0.99), of.ms(1));
}

void print_times(figures const& found) {
  std::printf("\n%-60s %7s %9s %9s %9s %9s\n", "ms", "names", "first", "p50", "p99", "last");
  print("held when the master died: until looked for", found.asserted);
  print("waited for then: until tried", found.asked);
  print("... until granted, with the holder's work", found.granted);
  print("free and wanted until granted, before", found.idle_before);
  print("... from the election on", found.idle);
  std::printf("first grant %.1f ms after the death, %.1f ms after the election\n", ms(found.first_grant),
              ms(found.first_grant - (found.elected - found.died)));
}

void print_sorts(figures const& found) {
  std::set<std::string> sorts;
  for (auto const* all : {&found.here, &found.elsewhere})
    for (auto const& one : *all)
      for (auto const& [name, count] : one.sorts) sorts.insert(name);
  double const seconds[] = {10, std::max(ms(found.elected - found.died), 1.0) / 1e3, 1, 9};
  std::printf("\n%-24s %35s    %35s\n", "commands a second", "to the shard that failed", "to all others together");
  std::printf("%-24s", "");
  for (int i = 0; i < 2; ++i) std::printf(" %8s %8s %8s %8s%s", "usual", "outage", "1 s", "9 s", i == 0 ? "   " : "\n");
  auto const line = [&](std::string const& name, auto const& figure) {
    std::printf("%-24s", name.c_str());
    for (auto const* all : {&found.here, &found.elsewhere}) {
      for (std::size_t i = 0; i < parts; ++i) std::printf(" %8.0f", figure((*all)[i]) / seconds[i]);
      std::printf("%s", all == &found.here ? "   " : "\n");
    }
  };
  for (auto const& name : sorts) line(name, [&](work const& of) { return static_cast<double>(of.of(name)); });
  line("all", [](work const& of) { return static_cast<double>(of.commands()); });
  line("core of servers, %", [](work const& of) { return static_cast<double>(of.busy.count()) / 1e7; });
}

void print_peaks(figures const& found) {
  auto const row_of = [](nanoseconds of) { return static_cast<std::size_t>(of / 100ms); };
  std::size_t const died = row_of(found.died), elected = row_of(found.elected);
  struct {
    char const* name;
    std::size_t from, to;
  } const rows[] = {{"in the 10 s before", died - 100, died},
                    {"in the outage", died, elected},
                    {"from the election on", elected, elected + 100}};
  std::printf("\n%-24s %35s    %35s\n", "busiest", "the shard that failed", "the busiest other");
  std::printf("%-24s", "");
  for (int i = 0; i < 2; ++i)
    std::printf(" %8s %8s %8s %8s%s", "100 ms", "core, %", "1 s", "core, %", i == 0 ? "   " : "\n");
  for (auto const& row : rows) {
    std::printf("%-24s", row.name);
    for (load const* of : {&found.master, &found.other}) {
      for (std::size_t const tenths : {1u, 10u})
        std::printf(" %8llu %8.1f", static_cast<unsigned long long>(of->most_commands(tenths, row.from, row.to)),
                    ms(of->most_busy(tenths, row.from, row.to)) / static_cast<double>(tenths));
      std::printf("%s", of == &found.master ? "   " : "\n");
    }
  }
  std::printf("the longest that a command waited for the new master: %.1f ms\n", ms(found.longest_queue));
}

}  // namespace

int run(int count, char const* const* words) {
  wishes what;
  test::command_line all("scripts/simulate --scale");
  auto const most = std::numeric_limits<std::size_t>::max();
  all.number("--clients", what.clients, std::size_t{2}, most)
      .number("--names", what.names, std::size_t{4}, most)
      .number("--shards", what.shards, std::size_t{2}, std::size_t{1'000})
      .number("--elected-after", what.elected_after, std::int64_t{1}, std::int64_t{600'000})
      .number("--seed", what.seed)
      .flag("--silent", what.silent);
  if (auto const code = all.read(count, words, [] { std::printf("%s", help); })) return *code;
  auto const began = std::chrono::steady_clock::now();
  figures const found = play(what);
  std::printf(
      "%zu clients, %zu names, %zu shards; %zu connections, %zu grants. One master died%s; its replica was\n"
      "elected %.0f ms later. Of its names %zu were held, %zu waited for.\n",
      what.clients, what.names, what.shards, found.connections, found.grants, what.silent ? " with its machine" : "",
      ms(found.elected - found.died), found.held, found.wanted);
  print_times(found);
  print_sorts(found);
  print_peaks(found);
  std::printf("%zu releases ended with an error before the election, and went on in the background\n", found.gave_up);
  std::printf("lost=%zu two_holders=%zu failed_calls=%zu forgotten=%zu seconds=%.1f\n", found.lost, found.two_holders,
              found.failed_calls, found.forgotten,
              std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count());
  return found.lost + found.two_holders + found.failed_calls + found.forgotten == 0 ? 0 : 1;
}

}  // namespace latchkey::scale
