#include "report.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string_view>

namespace demo {

namespace {

double ms(std::int64_t nanoseconds) { return static_cast<double>(nanoseconds) / 1e6; }

}  // namespace

double percentile(std::vector<double> const& sorted, double percent) {
  if (sorted.empty()) return 0;
  auto const rank = std::ceil(percent / 100 * static_cast<double>(sorted.size()));
  auto const index = static_cast<std::size_t>(std::max(rank, 1.0)) - 1;
  return sorted[std::min(index, sorted.size() - 1)];
}

void summarise_requests(row_result& result, std::span<request_record const> records, std::int64_t go_ns,
                        std::int64_t over_ns, std::int64_t deadline_ns) {
  std::vector<double> waits;
  waits.reserve(records.size());
  std::int64_t last_ns = go_ns;
  for (auto const& record : records) {
    switch (record.state.load(std::memory_order_acquire)) {
      case request_state::not_started: continue;
      case request_state::waiting: ++result.hung; [[fallthrough]];
      case request_state::gave_up:
        waits.push_back(ms(std::max(over_ns, record.ended_ns) - record.started_ns));
        continue;
      case request_state::serving: ++result.hung; break;
      case request_state::done:
        ++result.done;
        result.bought += record.bought;
        last_ns = std::max(last_ns, record.ended_ns);
        break;
      case request_state::lost: ++result.lost; break;
      case request_state::failed:
        ++result.failed;
        if (record.granted_ns == 0) {
          waits.push_back(ms(record.ended_ns - record.started_ns));
          continue;
        }
        break;
    }
    waits.push_back(ms(record.granted_ns - record.started_ns));
  }
  result.requested = static_cast<std::int64_t>(records.size());
  result.cut_off = !result.finished() && over_ns >= deadline_ns;
  result.seconds = ms((result.finished() ? last_ns : std::max(over_ns, last_ns)) - go_ns) / 1e3;

  std::sort(waits.begin(), waits.end());
  result.p50_ms = percentile(waits, 50);
  result.p90_ms = percentile(waits, 90);
  result.p99_ms = percentile(waits, 99);
  result.longest_ms = waits.empty() ? 0 : waits.back();
}

std::string fixed(double value, int digits) {
  std::array<char, 64> buffer;
  auto const [end, error] =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::fixed, digits);
  return error == std::errc{} ? std::string(buffer.data(), end) : std::string("?");
}

std::string short_number(double value) { return fixed(value, value < 0.995 ? 2 : value < 9.95 ? 1 : 0); }

std::string milliseconds_text(double ms) { return fixed(ms, ms < 9.95 ? 1 : 0); }

namespace {

std::vector<row_result const*> select(std::vector<row_result> const& results, bool (*wanted)(way)) {
  std::vector<row_result const*> found;
  for (auto const& result : results) {
    if (wanted(result.how)) found.push_back(&result);
  }
  return found;
}

bool slower(row_result const* a, row_result const* b) { return a->per_second() < b->per_second(); }
bool shorter_wait(row_result const* a, row_result const* b) { return a->p99_ms < b->p99_ms; }

// "1.6 times"; from ten on the digit after the point says nothing.
std::string times(double factor) { return fixed(factor, factor < 9.95 ? 1 : 0) + " times"; }

std::string comparison(std::vector<row_result const*> const& recipes, std::vector<row_result const*> const& ours) {
  auto const& fastest = **std::max_element(recipes.begin(), recipes.end(), slower);
  auto const& slowest = **std::min_element(ours.begin(), ours.end(), slower);
  auto const& quickest = **std::min_element(recipes.begin(), recipes.end(), shorter_wait);
  auto const& longest = **std::max_element(ours.begin(), ours.end(), shorter_wait);
  if (fastest.per_second() <= 0 || longest.p99_ms <= 0) return {};
  auto const speed = slowest.per_second() / fastest.per_second();
  auto const wait = quickest.p99_ms / longest.p99_ms;
  return "; its slowest row served " + times(speed) + " as many requests per second as the fastest recipe, with " +
         (wait >= 1 ? "a p99 wait " + times(wait) + " shorter" : "a p99 wait " + times(1 / wait) + " longer") +
         " than the best of them";
}

std::string after_failovers(std::vector<row_result const*> const& ours) {
  auto const& longest =
      **std::max_element(ours.begin(), ours.end(), [](auto* a, auto* b) { return a->longest_ms < b->longest_ms; });
  if (!longest.master_killed) return {};
  return ", although the master of its lock was killed in the middle of each row; the longest wait was " +
         milliseconds_text(longest.longest_ms) + " ms";
}

std::string fault(row_result const& result) {
  std::string text;
  auto const add = [&](std::int64_t count, std::string const& what) {
    if (count != 0) text += (text.empty() ? "" : ", ") + std::to_string(count) + " " + what;
  };
  if (is_latchkey(result.how)) {
    add(result.oversold(), "oversold");
    add(result.requested - result.done - result.lost - result.hung - result.failed, "not served");
  }
  add(result.lost, "lost");
  add(result.hung, "hung");
  add(result.failed, "failed");
  return text.empty() ? result.error : text + (result.error.empty() ? "" : " (" + result.error + ")");
}

}  // namespace

bool row_is_good(row_result const& result) {
  if (!result.error.empty() || result.failed > 0) return false;
  if (!is_latchkey(result.how)) return true;
  return result.oversold() == 0 && result.done == result.requested;
}

std::string conclusion(std::vector<row_result> const& results) {
  for (auto const& result : results) {
    if (!row_is_good(result)) return "FAILED: " + result.label + ": " + fault(result) + ".";
  }
  auto const ours = select(results, is_latchkey);
  auto const recipes = select(results, [](way how) { return how == way::recipe; });
  std::string text;
  for (auto const* result : select(results, [](way how) { return how == way::no_lock; })) {
    text += "Without a lock " + std::to_string(result->oversold()) + " of " + std::to_string(result->bought) +
            " sales were oversold. ";
  }
  if (ours.empty()) return text.empty() ? "Done." : text.substr(0, text.size() - 1);
  text += "latchkey oversold nothing";
  text += after_failovers(ours);
  if (!recipes.empty()) text += comparison(recipes, ours);
  return text + ".";
}

namespace {

using cells = std::vector<std::string>;

std::string remark(row_result const& result) {
  std::string text;
  auto const add = [&](std::string const& part) { text += (text.empty() ? "" : ", ") + part; };
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
          fixed(result.seconds, 1) + (result.cut_off ? "+" : " "),
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
      set += (i == 0 ? "" : " ") + (left ? line[i] + padding : padding + line[i]);
    }
    set.erase(set.find_last_not_of(' ') + 1);
    text += set + "\n";
  }
  return text;
}

std::string result_table(std::vector<row_result> const& results) {
  std::vector<cells> lines{{"", "", "over", "time ", "done", "wait,", "ms", "", "", "cmds", "CPU", ""},
                           {"", "done", "sold", "s ", "per s", "p50", "p90", "p99", "max", "each", "ms", ""}};
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
      "over sold: requests that were told they bought, less what the stock fell by.\n"
      "cmds each: sent to the server for a request; two of them are for the stock.\n"
      "CPU ms: of the client processes, for a request.\n";
  if (std::any_of(results.begin(), results.end(), [](auto const& result) { return result.cut_off; })) {
    notes += "+: cut off. Requests that still waited then count with the time they had waited.\n";
  }
  for (auto const& result : results) {
    if (!result.error.empty()) notes += "error in the row \"" + result.label + "\": " + result.error + "\n";
  }
  return notes;
}

namespace {

std::string json_string(std::string_view text) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string result = "\"";
  for (char const c : text) {
    auto const code = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (code < 0x20) {
      result += "\\u00";
      result += digits[code / 16];
      result += digits[code % 16];
    } else {
      result += c;
    }
  }
  return result + "\"";
}

// Members of one object, in the order in which they are added.
class object {
 public:
  object& add(std::string_view name, std::string const& text) { return raw(name, json_string(text)); }
  object& add(std::string_view name, std::int64_t value) { return raw(name, std::to_string(value)); }
  object& add(std::string_view name, double value) { return raw(name, fixed(value, 3)); }
  object& add(std::string_view name, bool value) { return raw(name, value ? "true" : "false"); }
  std::string text() const { return "{" + members_ + "}"; }

 private:
  object& raw(std::string_view name, std::string const& value) {
    members_ += (members_.empty() ? "" : ", ") + json_string(name) + ": " + value;
    return *this;
  }
  std::string members_;
};

std::string row_json(row_result const& result) {
  object row;
  row.add("name", result.name)
      .add("label", result.label)
      .add("requests", result.requested)
      .add("done", result.done)
      .add("bought", result.bought)
      .add("stock_fell", result.stock_fell)
      .add("oversold", result.oversold())
      .add("lost", result.lost)
      .add("hung", result.hung)
      .add("failed", result.failed)
      .add("cut_off", result.cut_off)
      .add("master_killed", result.master_killed)
      .add("seconds", result.seconds)
      .add("requests_per_second", result.per_second())
      .add("p50_wait_ms", result.p50_ms)
      .add("p90_wait_ms", result.p90_ms)
      .add("p99_wait_ms", result.p99_ms)
      .add("longest_wait_ms", result.longest_ms)
      .add("commands", result.commands)
      .add("commands_per_request", result.commands_per_request())
      .add("client_cpu_ms", result.cpu_ms)
      .add("client_cpu_ms_per_request", result.cpu_ms_per_request())
      .add("good", row_is_good(result))
      .add("error", result.error);
  return row.text();
}

}  // namespace

std::string to_json(options const& wanted, std::vector<row_result> const& results) {
  object settings;
  settings.add("requests", wanted.requests)
      .add("concurrency", wanted.concurrency)
      .add("stock", wanted.stock)
      .add("processes", wanted.processes)
      .add("think_us", wanted.think_us)
      .add("limit_s", wanted.limit_s)
      .add("cluster", wanted.locks != lock_place::with_stock)
      .add("failover", wanted.locks == lock_place::failing_cluster);
  std::string text = "{\"settings\": " + settings.text() + ",\n \"conclusion\": " + json_string(conclusion(results)) +
                     ",\n \"rows\": [";
  for (std::size_t i = 0; i < results.size(); ++i) text += (i == 0 ? "\n  " : ",\n  ") + row_json(results[i]);
  return text + "\n ]}\n";
}

}  // namespace demo
