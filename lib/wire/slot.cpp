#include <wire/slot.hpp>

#include <array>

namespace latchkey::detail {
namespace {

constexpr auto crc_of_bytes = [] {
  std::array<std::uint16_t, 256> table{};
  for (unsigned byte = 0; byte < table.size(); ++byte) {
    unsigned crc = byte << 8;
    for (int bit = 0; bit < 8; ++bit) crc = (crc & 0x8000) != 0 ? crc << 1 ^ 0x1021 : crc << 1;
    table[byte] = static_cast<std::uint16_t>(crc);
  }
  return table;
}();

}  // namespace

std::string_view hashed_part(std::string_view key) {
  auto const open = key.find('{');
  if (open == key.npos) return key;
  auto const close = key.find('}', open + 1);
  if (close == key.npos || close == open + 1) return key;
  return key.substr(open + 1, close - open - 1);
}

std::uint16_t slot_of(std::string_view key) {
  unsigned crc = 0;
  for (char const c : hashed_part(key))
    crc = (crc << 8 & 0xFFFF) ^ crc_of_bytes[crc >> 8 ^ static_cast<unsigned char>(c)];
  return static_cast<std::uint16_t>(crc % slot_count);
}

}  // namespace latchkey::detail
