#include <base/duration.hpp>
#include <cstdint>

namespace latchkey::tool {
namespace {

struct unit {
  std::string_view name;
  std::int64_t length;  // in milliseconds
};
// Longest first, the order in which they may follow each other; `ms` stands before `m`, which begins it.
constexpr unit units[] = {{"d", 86'400'000}, {"h", 3'600'000}, {"ms", 1}, {"m", 60'000}, {"s", 1'000}};
constexpr std::int64_t longest = 1'000LL * 365 * 86'400'000;

constexpr std::string_view digits = "0123456789";

std::string_view take_digits(std::string_view& text) {
  auto const taken = text.substr(0, text.find_first_not_of(digits));
  text.remove_prefix(taken.size());
  return taken;
}

unit const* take_unit(std::string_view& text) {
  for (auto const& one : units) {
    if (!text.starts_with(one.name)) continue;
    text.remove_prefix(one.name.size());
    return &one;
  }
  return nullptr;
}

// `whole.part` of a unit, rounded up; empty where it is too long.
std::optional<std::int64_t> in_ms(std::string_view whole, std::string_view part, std::int64_t length) {
  std::int64_t value = 0;
  for (char const digit : whole) {
    value = value * 10 + (digit - '0');
    if (value > longest / length) return {};
  }
  value *= length;
  // What stands behind the ninth digit is less than a millisecond of the longest unit, and rounded up.
  std::int64_t numerator = 0, denominator = 1;
  bool more = false;
  for (char const digit : part) {
    if (denominator < 1'000'000'000) {
      numerator = numerator * 10 + (digit - '0');
      denominator *= 10;
    } else {
      more = more || digit != '0';
    }
  }
  auto const scaled = numerator * length;
  auto const rounded_up = scaled / denominator + (scaled % denominator != 0 || more);
  return value + rounded_up;
}

}  // namespace

std::optional<milliseconds> read_duration(std::string_view text) {
  if (text == "forever") return forever;
  if (text.empty()) return {};
  std::int64_t sum = 0;
  std::int64_t above = longest;  // units get smaller from left to right
  while (!text.empty()) {
    auto const whole = take_digits(text);
    std::string_view part;
    bool const point = text.starts_with('.');
    if (point) {
      text.remove_prefix(1);
      part = take_digits(text);
    }
    if (whole.empty() || (point && part.empty())) return {};
    bool const bare = text.empty() && above == longest;
    auto const* const found = bare ? nullptr : take_unit(text);
    if (!bare && (!found || found->length >= above)) return {};
    auto const length = bare ? 1'000 : found->length;
    if (point && !text.empty()) return {};  // only the last part is broken
    auto const more = in_ms(whole, part, length);
    if (!more || (sum += *more) > longest) return {};
    above = length;
  }
  return milliseconds(sum);
}

std::string in_words(milliseconds length) {
  if (length == forever) return "for ever";
  auto const ms = length.count();
  if (ms < 1'000) return std::to_string(ms) + " ms";
  if (ms < 120'000) return std::to_string(ms / 1'000) + " s";
  if (ms < 7'200'000) return std::to_string(ms / 60'000) + " min";
  return std::to_string(ms / 3'600'000) + " h";
}

}  // namespace latchkey::tool
