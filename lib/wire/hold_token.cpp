#include <wire/hold_token.hpp>

#include <charconv>
#include <utility>

namespace latchkey::detail {
namespace {

constexpr std::string_view mark = "lk1.";
constexpr std::string_view letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
constexpr std::string_view hex = "0123456789abcdef";
constexpr std::size_t longest = 128 * 1'024;

std::string to_base64url(std::string_view bytes) {
  std::string text;
  std::uint32_t bits = 0;
  int count = 0;
  for (char const byte : bytes) {
    bits = bits << 8 | static_cast<unsigned char>(byte);
    for (count += 8; count >= 6; count -= 6) text += letters[bits >> (count - 6) & 63];
  }
  if (count > 0) text += letters[bits << (6 - count) & 63];
  return text;
}

// What the writer does not write is none.
std::optional<std::string> from_base64url(std::string_view text) {
  std::string bytes;
  std::uint32_t bits = 0;
  int count = 0;
  for (char const letter : text) {
    auto const value = letters.find(letter);
    if (value == letters.npos) return {};
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
      ((out += "\\u00") += hex[value / 16]) += hex[value % 16];
    else
      out += c;
  }
  out += '"';
}

template <class Number>
bool read_number(std::string_view text, Number& made) {
  auto const* const end = text.data() + text.size();
  auto const read = std::from_chars(text.data(), end, made);
  return read.ec == std::errc() && read.ptr == end;
}

// Reads an object of texts and numbers, without blanks, as JSON is written that nobody is to look at.
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

bool set_owner(hold_token& made, std::string_view text) {
  auto const colon = text.rfind(':');
  if (colon == text.npos || colon == 0) return false;
  made.client = text.substr(0, colon);
  return read_number(text.substr(colon + 1), made.owner);
}

bool read_member(flat_reader& from, hold_token& made) {
  auto const key = from.text();
  if (!key || !from.take(':')) return false;
  if (auto const digits = from.number(); !digits.empty()) return *key != "fence" || read_number(digits, made.fence);
  auto value = from.text();
  if (!value) return false;
  if (*key == "name")
    made.name = *std::move(value);
  else if (*key == "kind")
    made.kind = *std::move(value);
  else if (*key == "owner")
    return set_owner(made, *value);
  return true;
}

}  // namespace

std::string write_token(hold_token const& hold) {
  std::string json = "{\"name\":";
  add_text(json, hold.name);
  json += ",\"kind\":";
  add_text(json, hold.kind);
  json += ",\"owner\":";
  add_text(json, hold.client + ':' + std::to_string(hold.owner));
  if (hold.fence != 0) json += ",\"fence\":" + std::to_string(hold.fence);
  return std::string(mark) + to_base64url(json + '}');
}

std::optional<hold_token> read_token(std::string_view text) {
  if (!text.starts_with(mark) || text.size() > longest) return {};
  auto const json = from_base64url(text.substr(mark.size()));
  if (!json) return {};
  flat_reader from(*json);
  hold_token made;
  if (!from.take('{')) return {};
  do {
    if (!read_member(from, made)) return {};
  } while (from.take(','));
  if (!from.take('}') || !from.over() || made.name.empty() || made.client.empty()) return {};
  return made;
}

}  // namespace latchkey::detail
