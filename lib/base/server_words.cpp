#include <algorithm>
#include <array>
#include <base/server_words.hpp>

namespace latchkey::detail {
namespace {

constexpr std::string_view place = "@user_script:";

constexpr std::array<std::string_view, 8> passing = {"LOADING",    "BUSY",     "OOM",         "MISCONF",
                                                     "NOREPLICAS", "TRYAGAIN", "CLUSTERDOWN", "MASTERDOWN"};

// Its connection is closed afterwards; another one may find room.
constexpr std::string_view too_many_clients = "ERR max number of clients";

// Redis 7 begins with `ERR Script attempted`, Redis 6.2 with `Lua script attempted`, Valkey with `ERR Attempted`.
constexpr std::string_view key_elsewhere = "ttempted to access a non local key in a cluster node";

bool digit_or_blank(char c) { return c == ' ' || (c >= '0' && c <= '9'); }

// Takes `@user_script: 12: ` off the front.
std::string_view skip_place(std::string_view text) {
  auto at = place.size();
  while (at < text.size() && digit_or_blank(text[at])) ++at;
  if (at < text.size() && text[at] == ':') ++at;
  while (at < text.size() && text[at] == ' ') ++at;
  return text.substr(at);
}

}  // namespace

std::string_view without_place(std::string_view text) noexcept {
  // An old server's error of a whole script repeats the place; what follows the last one is the cause. Newer ones
  // name the place behind the cause, where it does no harm.
  if (text.starts_with("ERR Error running script"))
    if (auto first = text.find(place); first != text.npos) text.remove_prefix(first);
  while (text.starts_with(place)) text = skip_place(text);
  if (text.starts_with('-')) text.remove_prefix(1);
  return text;
}

std::string_view first_word(std::string_view text) noexcept {
  text = without_place(text);
  return text.substr(0, text.find_first_of(" \r\n"));
}

bool names_key_elsewhere(std::string_view text) noexcept { return text.find(key_elsewhere) != text.npos; }

bool passes_by_itself(std::string_view text) noexcept {
  return std::find(passing.begin(), passing.end(), first_word(text)) != passing.end() ||
         without_place(text).starts_with(too_many_clients) || names_key_elsewhere(text);
}

}  // namespace latchkey::detail
