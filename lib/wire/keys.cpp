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

}  // namespace latchkey::detail
