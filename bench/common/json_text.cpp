#include <common/json_text.hpp>

namespace bench {

std::string quoted(std::string const& text) {
  std::string made = "\"";
  for (char const c : text) {
    if (c == '"' || c == '\\') made += '\\';
    made += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return made + "\"";
}

}  // namespace bench
