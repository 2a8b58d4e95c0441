#include <wire/kind.hpp>

namespace latchkey::detail {

std::string prefixed(std::string_view prefix, std::string_view name) {
  bool const has_tag = name.find('{') != name.npos;
  std::string key;
  key.reserve(prefix.size() + name.size() + 3);
  key.append(prefix).append(has_tag ? ":" : ":{").append(name);
  if (!has_tag) key += '}';
  return key;
}

std::string suffixed(std::string_view name, std::string_view suffix) {
  bool const has_tag = name.find('{') != name.npos;
  std::string key;
  key.reserve(suffix.size() + name.size() + 3);
  key.append(has_tag ? "" : "{").append(name).append(has_tag ? ":" : "}:").append(suffix);
  return key;
}

}  // namespace latchkey::detail
