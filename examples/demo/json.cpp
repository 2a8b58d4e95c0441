#include "json.hpp"

#include "format.hpp"
#include "verdict.hpp"

#include <string_view>

namespace demo {
namespace {

std::string quoted(std::string_view text) {
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
  object& add(std::string_view name, std::string const& text) { return raw(name, quoted(text)); }
  object& add(std::string_view name, std::int64_t value) { return raw(name, std::to_string(value)); }
  object& add(std::string_view name, double value) { return raw(name, fixed(value, 3)); }
  object& add(std::string_view name, bool value) { return raw(name, value ? "true" : "false"); }
  std::string text() const { return "{" + members_ + "}"; }

 private:
  object& raw(std::string_view name, std::string const& value) {
    members_ += (members_.empty() ? "" : ", ") + quoted(name) + ": " + value;
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
      .add("limit_s", wanted.limit_s);
  std::string text =
      "{\"settings\": " + settings.text() + ",\n \"conclusion\": " + quoted(conclusion(results)) + ",\n \"rows\": [";
  for (std::size_t i = 0; i < results.size(); ++i) text += (i == 0 ? "\n  " : ",\n  ") + row_json(results[i]);
  return text + "\n ]}\n";
}

}  // namespace demo
