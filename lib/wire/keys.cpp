#include <wire/kind.hpp>

namespace latchkey::detail {

namespace {

void append_prefixed(std::string& key, std::string_view prefix, std::string_view name) {
  bool const has_tag = name.find('{') != name.npos;
  key.reserve(prefix.size() + name.size() + 3);
  key.append(prefix).append(has_tag ? ":" : ":{").append(name);
  if (!has_tag) key += '}';
}

}  // namespace

std::string prefixed(std::string_view prefix, std::string_view name) {
  std::string key;
  append_prefixed(key, prefix, name);
  return key;
}

void add_prefixed(words& command, std::string_view prefix, std::string_view name) {
  append_prefixed(command.add_empty(), prefix, name);
}

std::string suffixed(std::string_view name, std::string_view suffix) {
  bool const has_tag = name.find('{') != name.npos;
  std::string key;
  key.reserve(suffix.size() + name.size() + 3);
  key.append(has_tag ? "" : "{").append(name).append(has_tag ? ":" : "}:").append(suffix);
  return key;
}

}  // namespace latchkey::detail
