#include <base/base64.hpp>
#include <cstdint>

namespace latchkey::tool {
namespace {

constexpr std::string_view letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

}  // namespace

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
  // What is left over must be what the writer puts there: nothing.
  if (count == 6 || (bits & ((1u << count) - 1)) != 0) return {};
  return bytes;
}

}  // namespace latchkey::tool
