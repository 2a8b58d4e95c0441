#include <wire/number.hpp>
#include <wire/redirection.hpp>
#include <wire/slot.hpp>

namespace latchkey::detail {

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

}  // namespace latchkey::detail
