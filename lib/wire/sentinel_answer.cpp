#include <wire/number.hpp>
#include <wire/sentinel_answer.hpp>

namespace latchkey::detail {

namespace {

// The value of a field in a list of fields and values.
std::string_view value_of(reply const& fields, std::string_view name) {
  if (!fields.is_array()) return {};
  for (std::size_t i = 0; i + 1 < fields.elements.size(); i += 2)
    if (fields.elements[i].text == name) return fields.elements[i + 1].text;
  return {};
}

std::optional<node_address> address_of(std::string_view host, std::string_view port) {
  node_address made{std::string(host)};
  if (made.host.empty() || !read_number(port, made.port) || made.port == 0) return {};
  return made;
}

}  // namespace

std::optional<node_address> read_address(reply const& answer) {
  if (!answer.is_array() || answer.elements.size() != 2) return {};
  return address_of(answer.elements[0].text, answer.elements[1].text);
}

std::optional<std::uint64_t> read_epoch(reply const& answer) {
  std::uint64_t made = 0;
  if (!read_number(value_of(answer, "config-epoch"), made)) return {};
  return made;
}

std::size_t read_replicas(reply const& answer) {
  std::size_t made = 0;
  return read_number(value_of(answer, "num-slaves"), made) ? made : 0;
}

std::vector<node_address> read_sentinels(reply const& answer) {
  std::vector<node_address> made;
  if (!answer.is_array()) return made;
  for (auto const& reply : answer.elements)
    if (auto at = address_of(value_of(reply, "ip"), value_of(reply, "port"))) made.push_back(std::move(*at));
  return made;
}

bool switches(std::string_view channel, std::string_view payload, std::string_view master) {
  if (channel == promoted) {
    constexpr std::string_view what = "master ";
    if (!payload.starts_with(what)) return false;
    payload.remove_prefix(what.size());
  }
  return payload.starts_with(master) && payload.substr(master.size()).starts_with(' ');
}

bool names_no_master(reply const& answer) {
  return answer.kind == reply::type::nil ||
         (answer.is_error() && answer.text.find("No such master") != std::string::npos);
}

}  // namespace latchkey::detail
