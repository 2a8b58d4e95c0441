#include <algorithm>
#include <charconv>
#include <latchkey/error.hpp>
#include <wire/uri_text.hpp>

namespace latchkey::detail {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// -1: not a hexadecimal digit.
int hex_value(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

std::size_t uri_text::find_control() const {
  auto const found = std::find_if(text_.begin(), text_.end(), [](char c) {
    auto const byte = static_cast<unsigned char>(c);
    return byte <= 0x20 || byte == 0x7F;
  });
  return found == text_.end() ? npos : static_cast<std::size_t>(found - text_.begin());
}

uri_text uri_text::from(std::size_t at) const {
  at = std::min(at, text_.size());
  return {text_.substr(at), offset_ + at};
}

std::string uri_text::lower() const {
  std::string made(text_);
  for (auto& c : made)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return made;
}

std::string uri_text::decoded() const {
  std::string made;
  made.reserve(text_.size());
  for (std::size_t i = 0; i < text_.size(); ++i) {
    if (text_[i] != '%') {
      made += text_[i];
      continue;
    }
    auto const high = i + 1 < text_.size() ? hex_value(text_[i + 1]) : -1;
    auto const low = i + 2 < text_.size() ? hex_value(text_[i + 2]) : -1;
    if (high < 0 || low < 0) fail(i, "two hexadecimal digits belong behind a percent sign");
    if (high == 0 && low == 0) fail(i, "a zero byte cannot be used here");
    made += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return made;
}

std::int64_t uri_text::number(std::int64_t least, std::int64_t most, std::string_view problem) const {
  if (text_.empty() || !std::all_of(text_.begin(), text_.end(), is_digit)) fail(0, problem);
  std::int64_t value = 0;
  auto const parsed = std::from_chars(text_.data(), text_.data() + text_.size(), value);
  if (parsed.ec != std::errc() || value < least || value > most) fail(0, problem);
  return value;
}

void uri_text::fail(std::size_t at, std::string_view problem) const {
  throw lock_error(errc::bad_uri,
                   std::string(problem) + ", at character " + std::to_string(offset_ + at + 1) + " of the URI");
}

}  // namespace latchkey::detail
