// Boost.JSON, compiled here, so that no further library is needed.
#include <boost/json/src.hpp>

#include <base/json.hpp>

namespace latchkey::tool {
namespace {

// How many bytes the character has that `text` begins with; zero: that is no UTF-8. As RFC 3629: neither longer than
// needed, nor half of a pair, nor beyond U+10FFFF.
std::size_t length_of_character(std::string_view text) {
  auto const byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  unsigned const first = byte(0), second = byte(1);
  if (first < 0x80) return 1;
  if (first < 0xc2 || first > 0xf4) return 0;
  std::size_t const length = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  unsigned const least = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
  unsigned const most = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
  if (second < least || second > most) return 0;
  for (std::size_t i = 2; i < length; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  return length;
}

}  // namespace

std::string json_text(boost::json::value const& made) {
  auto const bytes = boost::json::serialize(made);
  std::string text;
  for (std::string_view rest = bytes; !rest.empty();) {
    auto const length = length_of_character(rest);
    text += length == 0 ? std::string_view("\xef\xbf\xbd") : rest.substr(0, length);
    rest.remove_prefix(length == 0 ? 1 : length);
  }
  return text;
}

}  // namespace latchkey::tool
