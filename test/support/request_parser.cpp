#include <support/request_parser.hpp>

#include <algorithm>
#include <cctype>
#include <optional>

namespace latchkey::test {

namespace {

// The number after the type byte at `at`; moves `at` behind the end of the line.
std::optional<std::size_t> read_length(std::string_view bytes, std::size_t& at) {
  auto const end = bytes.find("\r\n", at);
  if (end == std::string_view::npos) return std::nullopt;
  auto const length = std::stoull(std::string(bytes.substr(at + 1, end - at - 1)));
  at = end + 2;
  return length;
}

}  // namespace

std::string request_parser::request::name() const {
  std::string result = words.empty() ? std::string() : words.front();
  std::transform(result.begin(), result.end(), result.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return result;
}

bool request_parser::next(request& out) {
  std::size_t at = 0;
  auto const count = read_length(pending_, at);
  if (!count) return false;
  out.words.clear();
  for (std::size_t i = 0; i < *count; ++i) {
    auto const length = read_length(pending_, at);
    if (!length || pending_.size() < at + *length + 2) return false;
    out.words.push_back(pending_.substr(at, *length));
    at += *length + 2;
  }
  out.bytes = pending_.substr(0, at);
  pending_.erase(0, at);
  return true;
}

std::size_t reply_length(std::string_view bytes) {
  auto const end = bytes.find("\r\n");
  if (end == std::string_view::npos) return 0;
  std::size_t length = end + 2;
  if (bytes[0] != '$' && bytes[0] != '*') return length;
  auto const count = std::stoll(std::string(bytes.substr(1, end - 1)));
  if (count < 0) return length;
  if (bytes[0] == '$') {
    length += static_cast<std::size_t>(count) + 2;
    return length <= bytes.size() ? length : 0;
  }
  for (long long i = 0; i < count; ++i) {
    auto const part = reply_length(bytes.substr(length));
    if (part == 0) return 0;
    length += part;
  }
  return length;
}

}  // namespace latchkey::test
