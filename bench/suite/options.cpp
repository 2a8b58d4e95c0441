#include <suite/options.hpp>
#include <support/command_line.hpp>

#include <algorithm>
#include <cstdio>

namespace bench {
namespace {

constexpr int most_rounds = 1'000;

constexpr char const* usage =
    "Usage: suite [--only GROUP]... [--rounds N] [--json FILE] [--list] [--help]\n"
    "Run it by scripts/bench, which prints its rows as a table.\n"
    "Exit status: 0 every target was kept; 1 one was missed, or something went wrong; 2 a bad option.\n";

}  // namespace

std::optional<int> read_options(int count, char const* const* words, suite_options& out) {
  bool list = false;
  latchkey::test::command_line all("suite");
  all.number("--rounds", out.rounds, 1, most_rounds)
      .text("--json", out.json)
      .flag("--list", list)
      .value("--only", [&](std::string_view name) {
        auto const groups = all_groups();
        auto const found =
            std::find_if(groups.begin(), groups.end(), [&](auto const& one) { return one.name == name; });
        if (found != groups.end()) out.only.push_back(&*found);
        return found != groups.end();
      });
  auto const code = all.read(count, words, [] { std::fputs(usage, stdout); });
  if (code || !list) return code;
  for (auto const& one : all_groups()) std::printf("%-14s%s\n", one.name.data(), one.meaning.data());
  return 0;
}

}  // namespace bench
