#include <wire/packed.hpp>

#include <charconv>

namespace latchkey::detail {

namespace {

void pack(reply const& answer, std::string& out) {
  if (answer.is_array()) {
    for (auto const& reply : answer.elements) pack(reply, out);
    return;
  }
  if (answer.kind == reply::type::nil) return;
  std::string const text = answer.is_integer() ? std::to_string(answer.integer) : answer.text;
  out.append(std::to_string(text.size())).append(":").append(text);
}

}  // namespace

std::string packed(reply const& answer) {
  std::string made;
  pack(answer, made);
  return made;
}

std::vector<std::string> unpacked(std::string_view text) {
  std::vector<std::string> all;
  while (!text.empty()) {
    std::size_t size = 0;
    auto const colon = std::from_chars(text.data(), text.data() + text.size(), size).ptr;
    text.remove_prefix(static_cast<std::size_t>(colon - text.data()) + 1);
    all.emplace_back(text.substr(0, size));
    text.remove_prefix(size);
  }
  return all;
}

}  // namespace latchkey::detail
