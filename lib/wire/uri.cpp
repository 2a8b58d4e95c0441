#include <latchkey/error.hpp>
#include <wire/number.hpp>
#include <wire/uri.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

namespace latchkey::detail {

namespace {

// A part of a URI that knows where in the whole it stands, so that an error can say so without showing any of it.
class uri_text {
 public:
  static constexpr std::size_t npos = std::string_view::npos;

  explicit uri_text(std::string_view whole) : text_(whole) {}

  bool empty() const { return text_.empty(); }
  std::size_t size() const { return text_.size(); }
  char operator[](std::size_t at) const { return text_[at]; }
  bool starts_with(std::string_view start) const { return text_.starts_with(start); }
  std::size_t find(char c) const { return text_.find(c); }
  std::size_t find_any(std::string_view set) const { return text_.find_first_of(set); }
  std::size_t find_not_of(std::string_view set) const { return text_.find_first_not_of(set); }
  // Of a blank or a control character.
  std::size_t find_control() const;

  // The first `size` characters; all for npos.
  uri_text first(std::size_t size) const { return {text_.substr(0, size), offset_}; }
  // From the character at `at` on; empty, behind the last one, for npos.
  uri_text from(std::size_t at) const;
  uri_text after(std::size_t at) const { return from(at + 1); }

  std::string lower() const;
  // Without percent signs.
  std::string decoded() const;
  // A number of plain digits within the bounds.
  std::int64_t number(std::int64_t least, std::int64_t most, std::string_view problem) const;

  // \throws lock_error bad_uri
  [[noreturn]] void fail(std::size_t at, std::string_view problem) const;

 private:
  uri_text(std::string_view text, std::size_t offset) : text_(text), offset_(offset) {}

  std::string_view text_;
  std::size_t offset_ = 0;
};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// -1: not a hexadecimal digit.
int hex_value(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

std::size_t uri_text::find_control() const {
  auto const found = std::find_if(text_.begin(), text_.end(), [](char c) {
    auto const byte = static_cast<unsigned char>(c);
    return byte <= 0x20 || byte == 0x7F;
  });
  return found == text_.end() ? npos : static_cast<std::size_t>(found - text_.begin());
}

uri_text uri_text::from(std::size_t at) const {
  at = std::min(at, text_.size());
  return {text_.substr(at), offset_ + at};
}

std::string uri_text::lower() const {
  std::string made(text_);
  for (auto& c : made)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return made;
}

std::string uri_text::decoded() const {
  std::string made;
  made.reserve(text_.size());
  for (std::size_t i = 0; i < text_.size(); ++i) {
    if (text_[i] != '%') {
      made += text_[i];
      continue;
    }
    auto const high = i + 1 < text_.size() ? hex_value(text_[i + 1]) : -1;
    auto const low = i + 2 < text_.size() ? hex_value(text_[i + 2]) : -1;
    if (high < 0 || low < 0) fail(i, "two hexadecimal digits belong behind a percent sign");
    if (high == 0 && low == 0) fail(i, "a zero byte cannot be used here");
    made += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return made;
}

std::int64_t uri_text::number(std::int64_t least, std::int64_t most, std::string_view problem) const {
  if (text_.empty() || !std::all_of(text_.begin(), text_.end(), is_digit)) fail(0, problem);
  std::int64_t value = 0;
  if (!read_number(text_, value) || value < least || value > most) fail(0, problem);
  return value;
}

void uri_text::fail(std::size_t at, std::string_view problem) const {
  throw lock_error(errc::bad_uri,
                   std::string(problem) + ", at character " + std::to_string(offset_ + at + 1) + " of the URI");
}

namespace {

constexpr std::size_t longest_socket_path = 107;  // what fits a sockaddr_un
constexpr std::size_t longest_host = 255;

// `[user[:password]]`, without the `@`.
void read_user(uri_text part, target& to) {
  auto const colon = part.find(':');
  to.username = part.first(colon).decoded();
  if (colon == uri_text::npos) return;
  auto const password = part.after(colon);
  if (auto const second = password.find(':'); second != uri_text::npos)
    password.fail(second, "a colon in a user name or password is written %3A");
  to.password = password.decoded();
}

void read_port(uri_text part, node_address& to) {
  to.port = static_cast<std::uint16_t>(part.number(1, 65'535, "the port is not a number from 1 to 65535"));
}

void read_bracketed(uri_text part, node_address& to) {
  auto const end = part.find(']');
  if (end == uri_text::npos) part.fail(0, "the bracket of an IPv6 address is not closed");
  auto const address = part.first(end).after(0);
  if (address.empty()) address.fail(0, "no host");
  // Behind a percent sign stands the name of an interface, of any characters.
  auto const zone = address.find('%');
  if (auto const odd = address.first(zone).find_not_of("0123456789abcdefABCDEF:."); odd != uri_text::npos)
    address.fail(odd, "not a character of an IPv6 address");
  if (address.first(zone).find(':') == uri_text::npos) address.fail(0, "only an IPv6 address goes in brackets");
  to.host = address.decoded();
  auto const rest = part.after(end);
  if (rest.empty()) return;
  if (rest[0] != ':') rest.fail(0, "only a port can follow the address");
  read_port(rest.after(0), to);
}

// A default for the port stands in `to`.
void read_host(uri_text part, node_address& to) {
  if (!part.empty() && part[0] == '[') return read_bracketed(part, to);
  auto const colon = part.find(':');
  if (colon != uri_text::npos) {
    auto const port = part.after(colon);
    if (auto const second = port.find(':'); second != uri_text::npos)
      port.fail(second, "an IPv6 address goes in brackets");
    read_port(port, to);
  }
  auto const name = part.first(colon);
  if (name.empty()) name.fail(0, "no host");
  if (auto const odd = name.find_any("[]\\<>^`{|}\""); odd != uri_text::npos)
    name.fail(odd, "not a character of a host name");
  to.host = name.decoded();
  if (to.host.size() > longest_host) name.fail(longest_host, "the host name is too long");
}

int read_database(uri_text part) {
  return static_cast<int>(part.number(0, 2'147'483'647, "the database is not a number of 0 or more"));
}

// What stands before the path, without the user. `path` becomes what follows.
uri_text read_authority(uri_text rest, uri_text& path, target& to) {
  auto const end = rest.find_any("/?#");
  auto const authority = rest.first(end);
  path = rest.from(end);
  if (auto const late = path.find('@'); late != uri_text::npos)
    path.fail(0, "in a user name or password, / ? # and @ are written %2F %3F %23 and %40");
  auto const at = authority.find('@');
  if (at == uri_text::npos) return authority;
  auto const hosts = authority.after(at);
  if (auto const second = hosts.find('@'); second != uri_text::npos)
    hosts.fail(second, "an @ in a user name or password is written %40");
  read_user(authority.first(at), to);
  return hosts;
}

target read_tcp(uri_text rest) {
  target made;
  auto path = rest;
  auto const host = read_authority(rest, path, made);
  node_address at{{}, made.port};
  read_host(host, at);
  made.host = std::move(at.host);
  made.port = at.port;
  if (auto const parameters = path.find_any("?#"); parameters != uri_text::npos)
    path.fail(parameters, "no parameters can follow");
  if (path.size() > 1) made.database = read_database(path.after(0));
  return made;
}

target read_unix(uri_text rest) {
  target made;
  made.how = target::scheme::unix_socket;
  auto const question = rest.find('?');
  auto const path = rest.first(question);
  if (path.empty() || path[0] != '/') path.fail(0, "the path of a socket begins with a slash, as in unix:///path");
  if (path.size() == 1) path.fail(1, "no path");
  if (auto const fragment = rest.find('#'); fragment != uri_text::npos) rest.fail(fragment, "a # is written %23");
  made.path = path.decoded();
  if (made.path.size() > longest_socket_path) path.fail(longest_socket_path, "the path of a socket is too long");
  if (question == uri_text::npos) return made;
  auto const parameter = rest.after(question);
  if (!parameter.starts_with("db=")) parameter.fail(0, "the only parameter is db=");
  made.database = read_database(parameter.after(2));
  return made;
}

// `name=value&...`, of which each is given once.
void read_sentinel_parameters(uri_text rest, target& to) {
  constexpr std::string_view names[] = {"sentinel_user=", "sentinel_password="};
  std::string* const values[] = {&to.sentinel_username, &to.sentinel_password};
  for (bool more = true; more;) {
    auto const end = rest.find('&');
    auto const text = rest.first(end);
    more = end != uri_text::npos;
    std::size_t which = 0;
    while (which < std::size(names) && !text.starts_with(names[which])) ++which;
    if (which == std::size(names)) text.fail(0, "the parameters are sentinel_user= and sentinel_password=");
    if (!values[which]->empty()) text.fail(0, "a parameter is given twice");
    *values[which] = text.after(names[which].size() - 1).decoded();
    if (more) rest = rest.after(end);
  }
}

// `/master[/db][?parameters]`
void read_master(uri_text path, target& to) {
  if (auto const fragment = path.find('#'); fragment != uri_text::npos) path.fail(fragment, "a # is written %23");
  auto const question = path.find('?');
  auto const name = path.first(question);
  auto const words = name.empty() ? name : name.after(0);
  auto const slash = words.find('/');
  to.master = words.first(slash).decoded();
  if (to.master.empty()) words.fail(0, "the name of the master is missing, as in redis-sentinel://host/name");
  if (slash != uri_text::npos) to.database = read_database(words.after(slash));
  if (question != uri_text::npos) read_sentinel_parameters(path.after(question), to);
}

// `[user[:password]@]host[:port],...`. Answers the path.
uri_text read_hosts(uri_text rest, std::uint16_t usual_port, target& to) {
  constexpr std::size_t most = 32;
  auto path = rest;
  auto hosts = read_authority(rest, path, to);
  for (bool more = true; more;) {
    auto const end = hosts.find(',');
    more = end != uri_text::npos;
    node_address at{{}, usual_port};
    read_host(hosts.first(end), at);
    if (to.seeds.size() == most) hosts.fail(0, "more than 32 hosts");
    to.seeds.push_back(std::move(at));
    if (more) hosts = hosts.after(end);
  }
  to.host = to.seeds.front().host;
  to.port = to.seeds.front().port;
  return path;
}

target read_sentinel(uri_text rest) {
  target made;
  made.how = target::scheme::sentinel;
  read_master(read_hosts(rest, 26'379, made), made);
  return made;
}

target read_cluster(uri_text rest) {
  target made;
  made.how = target::scheme::cluster;
  auto const path = read_hosts(rest, 6'379, made);
  if (auto const parameters = path.find_any("?#"); parameters != uri_text::npos)
    path.fail(parameters, "no parameters can follow");
  if (path.size() > 1) made.database = read_database(path.after(0));
  if (made.database > 0) path.fail(1, "a cluster has only database 0");
  return made;
}

}  // namespace

target parse_uri(std::string_view text) {
  uri_text const whole(text);
  if (whole.empty()) whole.fail(0, "the URI is empty");
  if (auto const odd = whole.find_control(); odd != uri_text::npos)
    whole.fail(odd, "blanks and control characters are written with a percent sign");
  auto const colon = whole.find(':');
  auto const scheme = whole.first(colon).lower();
  if (colon == uri_text::npos) whole.fail(0, "no scheme, such as redis://");
  auto const rest = whole.after(colon);

  if (scheme == "embedded") {
    if (!rest.empty()) rest.fail(0, "nothing can follow embedded:");
    target made;
    made.how = target::scheme::embedded;
    return made;
  }
  bool const is_tls = scheme.starts_with("rediss");
  bool const is_sentinel = scheme == "redis-sentinel" || scheme == "rediss-sentinel";
  bool const is_cluster = scheme == "redis-cluster" || scheme == "rediss-cluster";
  if (scheme != "redis" && scheme != "rediss" && scheme != "unix" && !is_sentinel && !is_cluster)
    whole.fail(
        0,
        "unknown scheme; known are redis://, rediss://, redis-sentinel://, rediss-sentinel://, redis-cluster://, "
        "rediss-cluster://, unix:// and embedded:");
  if (!rest.starts_with("//")) rest.fail(0, "two slashes belong here");
  auto const hierarchy = rest.after(1);
  if (hierarchy.empty()) hierarchy.fail(0, "no host");
  target made = is_sentinel        ? read_sentinel(hierarchy)
                : is_cluster       ? read_cluster(hierarchy)
                : scheme == "unix" ? read_unix(hierarchy)
                                   : read_tcp(hierarchy);
  made.tls = is_tls;
  return made;
}

}  // namespace latchkey::detail
