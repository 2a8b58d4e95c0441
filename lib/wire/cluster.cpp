#include <wire/cluster.hpp>
#include <wire/number.hpp>

#include <algorithm>
#include <array>
#include <optional>

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

// `MOVED 3999 127.0.0.1:6381`; an IPv6 address stands without brackets.
std::optional<redirection> read_redirection(std::string_view text) {
  redirection made;
  if (text.starts_with("ASK "))
    made.once = true;
  else if (!text.starts_with("MOVED "))
    return {};
  text.remove_prefix(text.find(' ') + 1);
  auto const blank = text.find(' ');
  if (blank == text.npos || !read_number(text.substr(0, blank), made.slot) || made.slot >= slot_count) return {};
  auto const where = text.substr(blank + 1);
  auto const colon = where.rfind(':');
  if (colon == where.npos || !read_number(where.substr(colon + 1), made.to.port) || made.to.port == 0) return {};
  made.to.host = where.substr(0, colon);
  return made;
}

namespace {

// The words of one line, or flags between commas.
std::vector<std::string_view> split(std::string_view text, char by) {
  std::vector<std::string_view> made;
  for (;;) {
    auto const end = text.find(by);
    if (end != 0) made.push_back(text.substr(0, end));
    if (end == text.npos) return made;
    text.remove_prefix(end + 1);
  }
}

// `host:port@bus[,name[,...]]`
bool read_place(std::string_view text, cluster_member& to) {
  auto const comma = text.find(',');
  if (comma != text.npos) {
    auto const rest = text.substr(comma + 1);
    to.name = rest.substr(0, rest.find(','));
    if (to.name.find('=') != std::string::npos) to.name.clear();  // a field of another kind
  }
  text = text.substr(0, comma);
  text = text.substr(0, text.find('@'));
  auto const colon = text.rfind(':');
  if (colon == text.npos || !read_number(text.substr(colon + 1), to.at.port) || to.at.port == 0) return false;
  to.at.host = text.substr(0, colon);
  return true;
}

// `12` or `0-5460`. What is on its way stands in brackets, and still belongs to whom it did.
std::optional<std::pair<std::uint16_t, std::uint16_t>> read_slots(std::string_view text) {
  if (text.starts_with('[')) return {};
  std::pair<std::uint16_t, std::uint16_t> made;
  auto const dash = text.find('-');
  if (!read_number(text.substr(0, dash), made.first)) return {};
  made.second = made.first;
  if (dash != text.npos && !read_number(text.substr(dash + 1), made.second)) return {};
  if (made.second >= slot_count || made.first > made.second) return {};
  return made;
}

}  // namespace

cluster_view read_cluster(std::string_view text) {
  constexpr std::size_t before_slots = 8;  // id, place, flags, master, ping, pong, epoch, link
  cluster_view made;
  std::vector<std::string_view> followed;
  for (auto line : split(text, '\n')) {
    if (line.ends_with('\r')) line.remove_suffix(1);
    auto const words = split(line, ' ');
    if (words.size() < before_slots) {
      if (!words.front().empty()) made.named.push_back({.id = std::string(words.front())});
      continue;
    }
    auto const flags = split(words[2], ',');
    auto const is = [&](std::string_view flag) { return std::find(flags.begin(), flags.end(), flag) != flags.end(); };
    if (is("slave")) followed.push_back(words[3]);
    cluster_master master;
    master.id = words[0];
    master.failed = is("fail");
    bool const placed = read_place(words[1], master);
    bool const known = !is("noaddr") && !is("handshake");  // its id may be one that it has not, or its place
    made.named.push_back(static_cast<cluster_member const&>(master));
    if (!known || !placed) made.named.back().at = {};
    if (!known || !placed || !is("master") || !read_number(words[6], master.epoch)) continue;
    for (std::size_t i = before_slots; i < words.size(); ++i)
      if (auto const range = read_slots(words[i])) master.slots.push_back(*range);
    made.masters.push_back(std::move(master));
  }
  for (auto& master : made.masters)
    master.replicas =
        static_cast<std::size_t>(std::count(followed.begin(), followed.end(), std::string_view(master.id)));
  return made;
}

}  // namespace latchkey::detail
