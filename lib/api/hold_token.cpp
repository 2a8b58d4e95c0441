#include <latchkey/detail/hold_token.hpp>
#include <wire/number.hpp>

#include <charconv>
#include <utility>

namespace latchkey::detail {
namespace {

constexpr std::string_view token_mark = "lk1.";
constexpr std::string_view base64_letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
constexpr std::string_view hex_digits = "0123456789abcdef";
// A name of 64 KiB has six times as many characters at most, each byte as \u00xx, and base64 a third more.
constexpr std::size_t longest_token = 640 * 1'024;

std::string to_base64url(std::string_view bytes) {
  std::string text;
  std::uint32_t bits = 0;
  int count = 0;
  for (char const byte : bytes) {
    bits = bits << 8 | static_cast<unsigned char>(byte);
    for (count += 8; count >= 6; count -= 6) text += base64_letters[bits >> (count - 6) & 63];
  }
  if (count > 0) text += base64_letters[bits << (6 - count) & 63];
  return text;
}

// What the writer does not write is none.
std::optional<std::string> from_base64url(std::string_view text) {
  std::string bytes;
  std::uint32_t bits = 0;
  int count = 0;
  for (char const letter : text) {
    auto const value = base64_letters.find(letter);
    if (value == base64_letters.npos) return {};
    bits = bits << 6 | static_cast<std::uint32_t>(value);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes += static_cast<char>(bits >> count & 255);
  }
  if (count == 6 || (bits & ((1u << count) - 1)) != 0) return {};
  return bytes;
}

void add_text(std::string& out, std::string_view text) {
  out += '"';
  for (char const c : text) {
    auto const value = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      (out += '\\') += c;
    else if (value < 0x20)
      ((out += "\\u00") += hex_digits[value / 16]) += hex_digits[value % 16];
    else
      out += c;
  }
  out += '"';
}

// Reads an object of texts, numbers and lists of texts, without blanks, as JSON is written that nobody is to look at.
class flat_reader {
 public:
  explicit flat_reader(std::string_view text) : rest_(text) {}

  bool take(char c) {
    if (!rest_.starts_with(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  bool over() const { return rest_.empty(); }

  std::optional<std::string> text() {
    if (!take('"')) return {};
    std::string made;
    while (!rest_.empty()) {
      char const c = rest_.front();
      rest_.remove_prefix(1);
      if (c == '"') return made;
      if (c != '\\')
        made += c;
      else if (!escaped(made))
        return {};
    }
    return {};
  }

  std::string_view number() {
    auto const digits = rest_.substr(0, rest_.find_first_not_of("0123456789"));
    rest_.remove_prefix(digits.size());
    return digits;
  }

 private:
  bool escaped(std::string& made) {
    constexpr std::string_view names = "\"\\/bfnrt", meant = "\"\\/\b\f\n\r\t";
    if (rest_.empty()) return false;
    auto const which = names.find(rest_.front());
    if (which != names.npos) {
      made += meant[which];
      rest_.remove_prefix(1);
      return true;
    }
    // Control characters alone: other bytes are written as they are.
    if (rest_.size() < 5 || !rest_.starts_with("u00")) return false;
    unsigned char value = 0;
    auto const* const end = rest_.data() + 5;
    if (std::from_chars(rest_.data() + 3, end, value, 16).ptr != end || value >= 0x80) return false;
    made += static_cast<char>(value);
    rest_.remove_prefix(5);
    return true;
  }

  std::string_view rest_;
};

std::optional<std::vector<std::string>> read_list(flat_reader& from) {
  std::vector<std::string> made;
  do {
    auto word = from.text();
    if (!word) return {};
    made.push_back(*std::move(word));
  } while (from.take(','));
  if (!from.take(']')) return {};
  return made;
}

bool read_also(flat_reader& from, std::string_view key, hold_token& made) {
  auto const all = read_list(from);
  if (all && key == "also") made.names.insert(made.names.end(), all->begin(), all->end());
  return all.has_value();
}

bool read_digits(std::string_view digits, std::string_view key, hold_token& made) {
  if (key == "fence") return read_number(digits, made.fence.emplace());
  return key != "lease_ms" || read_number(digits, made.lease_ms);
}

bool read_member(flat_reader& from, hold_token& made) {
  auto const key = from.text();
  if (!key || !from.take(':')) return false;
  if (auto const digits = from.number(); !digits.empty()) return read_digits(digits, *key, made);
  if (from.take('[')) return read_also(from, *key, made);
  auto value = from.text();
  if (!value) return false;
  if (*key == "name")
    made.names.insert(made.names.begin(), *std::move(value));
  else if (*key == "kind")
    made.kind = *std::move(value);
  else if (*key == "owner")
    made.owner = *std::move(value);
  return true;
}

}  // namespace

std::string write_token(hold_token const& hold) {
  std::string json = "{\"name\":";
  add_text(json, hold.names.front());
  json += ",\"kind\":";
  add_text(json, hold.kind);
  json += ",\"owner\":";
  add_text(json, hold.owner);
  for (std::size_t i = 1; i < hold.names.size(); ++i) {
    json += i == 1 ? ",\"also\":[" : ",";
    add_text(json, hold.names[i]);
  }
  if (hold.names.size() > 1) json += ']';
  if (hold.lease_ms > 0) json += ",\"lease_ms\":" + std::to_string(hold.lease_ms);
  if (hold.fence) json += ",\"fence\":" + std::to_string(*hold.fence);
  return std::string(token_mark) + to_base64url(json + '}');
}

std::optional<hold_token> read_token(std::string_view text) {
  if (!text.starts_with(token_mark) || text.size() > longest_token) return {};
  auto const json = from_base64url(text.substr(token_mark.size()));
  if (!json) return {};
  flat_reader from(*json);
  hold_token made;
  if (!from.take('{')) return {};
  do {
    if (!read_member(from, made)) return {};
  } while (from.take(','));
  if (!from.take('}') || !from.over()) return {};
  if (made.names.empty() || made.names.front().empty() || made.kind.empty() || made.owner.empty()) return {};
  return made;
}

}  // namespace latchkey::detail
