#include "table.hpp"

#include "format.hpp"

#include <algorithm>

namespace demo {
namespace {

using cells = std::vector<std::string>;

std::string remark(row_result const& result) {
  std::string text;
  auto const add = [&](std::string const& part) { text += (text.empty() ? "" : ", ") + part; };
  if (result.cut_off) add("cut off");
  if (result.lost > 0) add(std::to_string(result.lost) + " lost");
  if (result.hung > 0) add(std::to_string(result.hung) + " hung");
  if (result.failed > 0) add(std::to_string(result.failed) + " failed");
  return text;
}

cells line_of(row_result const& result) {
  bool const waits = result.how != way::no_lock;
  auto const wait = [&](double ms) { return waits ? milliseconds_text(ms) : std::string("-"); };
  auto const each = [&](double value) { return result.done > 0 ? short_number(value) : std::string("-"); };
  return {result.label,
          std::to_string(result.done),
          std::to_string(result.oversold()),
          fixed(result.seconds, 1),
          fixed(result.per_second(), 0),
          wait(result.p50_ms),
          wait(result.p90_ms),
          wait(result.p99_ms),
          wait(result.longest_ms),
          each(result.commands_per_request()),
          each(result.cpu_ms_per_request()),
          remark(result)};
}

}  // namespace

std::string format_table(std::vector<std::vector<std::string>> const& lines) {
  std::vector<std::size_t> widths;
  for (auto const& line : lines) {
    widths.resize(std::max(widths.size(), line.size()));
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  }
  std::string text;
  for (auto const& line : lines) {
    std::string set;
    for (std::size_t i = 0; i < line.size(); ++i) {
      std::string const padding(widths[i] - line[i].size(), ' ');
      bool const left = i == 0 || i + 1 == widths.size();
      set += (i == 0 ? "" : "  ") + (left ? line[i] + padding : padding + line[i]);
    }
    set.erase(set.find_last_not_of(' ') + 1);
    text += set + "\n";
  }
  return text;
}

std::string result_table(std::vector<row_result> const& results) {
  std::vector<cells> lines{{"", "", "", "", "", "p50", "p90", "p99", "longest", "commands", "CPU ms", ""},
                           {"", "", "over-", "time", "done", "wait", "wait", "wait", "wait", "per", "per", ""},
                           {"", "done", "sold", "s", "per s", "ms", "ms", "ms", "ms", "request", "request", ""}};
  auto const headings = lines.size();
  for (auto const& result : results) lines.push_back(line_of(result));
  auto text = format_table(lines);
  // A rule under the headings, as long as the longest line.
  std::size_t longest = 0;
  std::size_t rule_at = 0;
  for (std::size_t line = 0, begin = 0; begin < text.size(); ++line) {
    auto const end = text.find('\n', begin);
    longest = std::max(longest, end - begin);
    begin = end + 1;
    if (line + 1 == headings) rule_at = begin;
  }
  return text.insert(rule_at, std::string(longest, '-') + "\n");
}

std::string table_notes(std::vector<row_result> const& results) {
  std::string notes =
      "oversold: requests that were told they bought, less what the stock really fell by.\n"
      "commands: sent by clients to the server; two of them read and write the stock.\n"
      "CPU: of the client processes.\n";
  if (std::any_of(results.begin(), results.end(), [](auto const& result) { return result.cut_off; })) {
    notes +=
        "cut off: the row reached its time limit. Requests that still waited then count with the time they had "
        "waited.\n";
  }
  for (auto const& result : results) {
    if (!result.error.empty()) notes += "error in the row \"" + result.label + "\": " + result.error + "\n";
  }
  return notes;
}

}  // namespace demo
