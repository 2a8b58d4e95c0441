#include <boost/json.hpp>

#include <algorithm>
#include <base/exit_code.hpp>
#include <base/json.hpp>
#include <base/kinds.hpp>
#include <base/say.hpp>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <look/locks.hpp>
#include <subcommands.hpp>

namespace latchkey::tool {
namespace {

namespace json = boost::json;

// A line of CLIENT LIST that carries a holder's id in its name, as clients of this library announce themselves:
// latchkey:UUID:PID@HOST:PROGRAM.
struct peer {
  std::string name, address;
  std::string pid, host, program;  // empty if the name is another
};

struct status_of_lock {
  found_lock lock;
  std::vector<std::optional<peer>> from;  // of each holder
  std::vector<std::string> line;          // of a fair lock
  std::int64_t listeners = 0;
};

std::string field_of(std::string_view line, std::string_view name) {
  auto const start = line.find(' ' + std::string(name) + '=');
  if (start == line.npos) return {};
  auto const rest = line.substr(start + name.size() + 2);
  return std::string(rest.substr(0, rest.find(' ')));
}

peer read_peer(std::string_view line, std::string const& uuid) {
  peer found{field_of(line, "name"), field_of(line, "addr"), {}, {}, {}};
  auto const mark = "latchkey:" + uuid + ':';
  if (!found.name.starts_with(mark)) return found;
  auto const rest = found.name.substr(mark.size());
  auto const at = rest.find('@');
  auto const colon = rest.find(':', at == rest.npos ? 0 : at);
  if (at == rest.npos || colon == rest.npos) return found;
  found.pid = rest.substr(0, at);
  found.host = rest.substr(at + 1, colon - at - 1);
  found.program = rest.substr(colon + 1);
  return found;
}

std::optional<peer> find_peer(std::string_view clients, std::string const& owner) {
  if (!is_owner(owner)) return {};
  auto const uuid = owner.substr(0, owner.find(':'));
  while (!clients.empty()) {
    auto const end = std::min(clients.find('\n'), clients.size());
    auto const line = clients.substr(0, end);
    if (field_of(line, "name").find(uuid) != std::string::npos) return read_peer(line, uuid);
    clients.remove_prefix(std::min(end + 1, clients.size()));
  }
  return {};
}

// In a cluster a name has two channels, of two sorts; which is used is up to the clients, and some listen to both.
std::int64_t listeners_to(session& server, std::string const& channel) {
  std::vector<command> questions{{"PUBSUB", "NUMSUB", channel}};
  if (server.has_sharded_channels()) questions.push_back({"PUBSUB", "SHARDNUMSUB", channel});
  std::int64_t most = 0;
  for (auto const& one : server.ask_all(questions)) {
    if (one.what == answer::type::error) server.refuse(one.text);
    if (one.list.size() == 2) most = std::max(most, one.list[1].number);
  }
  return most;
}

// The permits of a semaphore that are free, with those whose leases have ended. It stands there as a number.
std::int64_t free_permits(session& server, std::string const& name) {
  auto const type = server.ask({"TYPE", name}).text;
  auto const text = type == "string" ? server.ask(beginning_of(name)).text : std::string();
  std::int64_t count = 0;
  auto const [end, problem] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (problem != std::errc() || end != text.data() + text.size())
    throw failure(refused, quoted(name) + " is no lock, but a " + type);
  auto const time = server.ask({"TIME"}).list;
  if (time.size() != 2) server.strange();
  auto const now = std::atoll(time[0].text.c_str()) * 1'000 + std::atoll(time[1].text.c_str()) / 1'000;
  return count + server.ask_number({"ZCOUNT", leases_of(name), "-inf", std::to_string(now)});
}

status_of_lock ask(session& server, std::string const& name) {
  status_of_lock status{look_at(server, name), {}, {}, 0};
  if (status.lock.kind.empty()) {
    if (server.ask({"EXISTS", name}).number == 0) return status;
    status.lock.permits = with_rights("+time +zcount", [&] { return free_permits(server, name); });
    status.lock.kind = "semaphore";
    status.listeners = listeners_to(server, channel_of_permits(name));
    return status;
  }
  for (auto const& one : server.ask({"LRANGE", line_of(name), "0", "-1"}).list) status.line.push_back(one.text);
  status.listeners = listeners_to(server, channel_of(name, status.lock.kind));
  auto const clients = server.ask({"CLIENT", "LIST"}).text;
  for (auto const& one : status.lock.holders) status.from.push_back(find_peer(clients, one.owner));
  return status;
}

json::value or_null(std::string const& text) { return text.empty() ? json::value(nullptr) : json::value(text); }

void print_json(status_of_lock const& status) {
  auto made = json::parse(as_json(status.lock)).as_object();
  auto& holders = made["holders"].as_array();
  for (std::size_t i = 0; i < status.from.size(); ++i) {
    auto const from = status.from[i].value_or(peer{});
    auto& to = holders[i].as_object();
    to["connection"] = or_null(from.name);
    to["address"] = or_null(from.address);
    to["pid"] = from.pid.empty() ? json::value(nullptr) : json::value(std::atoll(from.pid.c_str()));
    to["host"] = or_null(from.host);
    to["program"] = or_null(from.program);
  }
  made["line"] = json::array(status.line.begin(), status.line.end());
  made["listeners"] = status.listeners;
  std::puts(json_text(made).c_str());
}

std::string origin_of(std::string const& owner, std::optional<peer> const& from) {
  if (!from && owner.starts_with(by_hand)) return "taken by hand: latchkey acquire";
  if (!from) return "no connection carries this id: Redisson, not announced, or gone";
  // By a Unix socket: the address is the server's own, and says nothing.
  bool const local =
      (from->address.starts_with('/') || from->address.starts_with("[/")) && from->address.ends_with(":0");
  auto const address = from->address.empty() || local ? std::string() : " from " + from->address;
  if (from->pid.empty()) return "connection " + quoted(from->name) + address;
  return quoted(from->program) + ", process " + quoted(from->pid) + " on " + quoted(from->host) + address;
}

void print_text(status_of_lock const& status) {
  auto const& lock = status.lock;
  if (lock.kind.empty()) {
    std::printf("%s is free\n", quoted(lock.name).c_str());
    return;
  }
  auto const listeners = [&](char const* what) {
    bool const one = status.listeners == 1;
    if (status.listeners > 0)
      std::printf("  %lld %s for %s release\n", static_cast<long long>(status.listeners),
                  one ? "connection listens" : "connections listen", what);
  };
  bool const either = lock.kind == plain_or_semaphore;
  auto const free = lock.permits.value_or(0);
  auto const count = free > 0 ? std::to_string(free) : "no";
  if (lock.permits && !either) {
    std::printf("%s is a semaphore: %s %s free\n", quoted(lock.name).c_str(), count.c_str(),
                free > 1 ? "permits are" : "permit is");
    return listeners("a");
  }
  auto const end = lock.remaining < 0 ? std::string("has no time to live")
                                      : "ends in " + in_words(milliseconds(lock.remaining)) + " unless renewed";
  if (either)
    std::printf("%s is a plain lock, or a semaphore with %s free %s, and %s\n", quoted(lock.name).c_str(),
                count.c_str(), free > 1 ? "permits" : "permit", end.c_str());
  else
    std::printf("%s is held (%s) and %s\n", quoted(lock.name).c_str(), lock.kind.c_str(), end.c_str());
  for (std::size_t i = 0; i < lock.holders.size(); ++i) {
    auto const& one = lock.holders[i];
    auto const times = one.count == "1" ? std::string() : ", " + one.count + " times";
    std::printf("  by %s%s%s\n     %s\n", quoted(one.owner).c_str(), times.c_str(), one.writes ? ", to write" : "",
                origin_of(one.owner, status.from[i]).c_str());
  }
  for (std::size_t i = 0; i < status.line.size(); ++i)
    std::printf("  in line %zu: %s\n", i + 1, quoted(status.line[i]).c_str());
  listeners("its");
}

}  // namespace

int status(command_line const& line) {
  session server(connection_of(line), line.operands().front());
  server.tell_of_replica();
  std::string const needed = "+type +exists +hgetall +getrange +strlen +pttl +lrange +pubsub|numsub +client|list";
  auto const found = with_rights(needed + (server.in_cluster() ? " +pubsub|shardnumsub" : ""),
                                 [&] { return ask(server, line.operands().front()); });
  if (line.has("json"))
    print_json(found);
  else
    print_text(found);
  return found.lock.held() ? yes : no;
}

}  // namespace latchkey::tool
