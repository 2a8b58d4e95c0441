#include <boost/algorithm/string/predicate.hpp>

#include <charconv>
#include <look/place.hpp>
#include <tuple>

namespace latchkey::tool {
namespace {

int digit_of(char c) { return c <= '9' ? c - '0' : (c | 32) - 'a' + 10; }

std::string decoded(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size()) {
      plain += static_cast<char>(digit_of(text[i + 1]) * 16 + digit_of(text[i + 2]));
      i += 2;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

// What stands before the mark; `text` keeps what stands behind it, or nothing.
std::string_view cut(std::string_view& text, char mark) {
  auto const at = text.find(mark);
  auto const before = text.substr(0, at);
  text = at == text.npos ? std::string_view() : text.substr(at + 1);
  return before;
}

std::pair<std::string, int> read_host(std::string_view text, int port) {
  auto const bracket = text.find(']');
  if (auto const colon = text.find(':', bracket == text.npos ? 0 : bracket); colon != text.npos) {
    auto const digits = text.substr(colon + 1);
    std::from_chars(digits.data(), digits.data() + digits.size(), port);
    text = text.substr(0, colon);
  }
  return {decoded(bracket == text.npos ? text : text.substr(1, bracket - 1)), port};
}

void read_parameters(std::string_view text, place& to) {
  while (!text.empty()) {
    auto value = cut(text, '&');
    auto const name = cut(value, '=');
    if (name == "sentinel_user") to.sentinel_user = decoded(value);
    if (name == "sentinel_password") to.sentinel_password = decoded(value);
  }
}

}  // namespace

place place_of(std::string_view uri) {
  place found;
  auto const scheme = uri.substr(0, uri.find("://"));
  auto rest = uri.substr(scheme.size() + 3);
  if (boost::algorithm::iequals(scheme, "unix")) {
    found.socket = decoded(cut(rest, '?'));
    if (!rest.empty()) found.database = rest.substr(3);  // db=
    return found;
  }
  bool const asks_sentinels = boost::algorithm::iends_with(scheme, "-sentinel");
  bool const asks_nodes = boost::algorithm::iends_with(scheme, "-cluster");
  if (auto const at = rest.substr(0, asks_sentinels ? rest.find('/') : rest.npos).rfind('@'); at != rest.npos) {
    auto who = rest.substr(0, at);
    found.user = decoded(cut(who, ':'));
    found.password = decoded(who);
    rest.remove_prefix(at + 1);
  }
  auto hosts = cut(rest, '/');
  if (asks_nodes) {
    while (!hosts.empty()) found.nodes.push_back(read_host(cut(hosts, ','), found.port));
    return found;
  }
  if (!asks_sentinels) {
    found.database = rest;
    std::tie(found.host, found.port) = read_host(hosts, found.port);
    return found;
  }
  while (!hosts.empty()) found.sentinels.push_back(read_host(cut(hosts, ','), 26379));
  auto path = cut(rest, '?');
  read_parameters(rest, found);
  found.master = decoded(cut(path, '/'));
  found.database = path;
  return found;
}

}  // namespace latchkey::tool
