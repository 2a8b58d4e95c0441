#include <server_model/commands.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <unordered_map>

namespace latchkey::model {

std::vector<command> const& all_commands() {
  static std::vector<command> const all = [] {
    std::vector<command> made;
    for (auto part : {key_commands(), hash_commands(), list_commands(), sorted_set_commands()})
      made.insert(made.end(), part.begin(), part.end());
    return made;
  }();
  return all;
}

command const* find_command(std::string_view name) {
  static auto const by_name = [] {
    std::unordered_map<std::string_view, command const*> made;
    for (auto const& one : all_commands()) made.emplace(one.name, &one);
    return made;
  }();
  char small[24];
  if (name.size() > sizeof small) return nullptr;
  for (std::size_t i = 0; i < name.size(); ++i)
    small[i] = name[i] >= 'A' && name[i] <= 'Z' ? static_cast<char>(name[i] + ('a' - 'A')) : name[i];
  auto const found = by_name.find({small, name.size()});
  return found == by_name.end() ? nullptr : found->second;
}

std::optional<std::int64_t> integer_of(std::string_view word) {
  std::int64_t value = 0;
  auto const [end, failed] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (failed != std::errc() || end != word.data() + word.size()) return {};
  bool const plain = word == "0" || (word[0] == '-' ? word.size() > 1 && word[1] != '0' : word[0] != '0');
  return plain ? std::optional(value) : std::nullopt;
}

std::optional<double> score_of(std::string_view word) {
  if (word == "-inf") return -HUGE_VAL;
  if (word == "+inf" || word == "inf") return HUGE_VAL;
  double value = 0;
  auto const [end, failed] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (failed != std::errc() || end != word.data() + word.size() || std::isnan(value)) return {};
  return value;
}

std::string shown(double score) {
  if (std::isinf(score)) return score > 0 ? "inf" : "-inf";
  if (score == std::floor(score) && std::abs(score) < 9e15) return std::to_string(static_cast<std::int64_t>(score));
  char digits[32];
  std::snprintf(digits, sizeof digits, "%.17g", score);
  return digits;
}

std::string lower(std::string_view word) {
  std::string made(word);
  for (char& c : made)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + ('a' - 'A'));
  return made;
}

bool is(std::string_view word, std::string_view name) {
  return std::equal(word.begin(), word.end(), name.begin(), name.end(),
                    [](char a, char b) { return a == b || (a >= 'A' && a <= 'Z' && a + ('a' - 'A') == b); });
}

reply wrong_number(std::string_view command) {
  return error("ERR wrong number of arguments for '" + std::string(command) + "' command");
}

reply wrong_type() { return error("WRONGTYPE Operation against a key holding the wrong kind of value"); }
reply not_an_integer() { return error("ERR value is not an integer or out of range"); }
reply syntax_error() { return error("ERR syntax error"); }

bool cut_range(std::int64_t& first, std::int64_t& last, std::size_t size) {
  auto const count = static_cast<std::int64_t>(size);
  if (first < 0) first = std::max<std::int64_t>(first + count, 0);
  if (last < 0) last += count;
  last = std::min(last, count - 1);
  return first <= last && first < count;
}

void encode(reply const& said, std::string& out) {
  auto const line = [&](char type, std::string_view value) {
    out += type;
    out += value;
    out += "\r\n";
  };
  switch (said.kind) {
    case reply::type::nil: out += "$-1\r\n"; return;
    case reply::type::integer: return line(':', std::to_string(said.integer));
    case reply::type::status: return line('+', said.text);
    case reply::type::error: return line('-', said.text);
    case reply::type::string:
      line('$', std::to_string(said.text.size()));
      out += said.text;
      out += "\r\n";
      return;
    case reply::type::array: break;
  }
  line('*', std::to_string(said.elements.size()));
  for (auto const& element : said.elements) encode(element, out);
}

}  // namespace latchkey::model
