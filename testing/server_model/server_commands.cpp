#include <server_model/server.hpp>

#include <fnmatch.h>

#include <algorithm>
#include <charconv>
#include <utility>

// What is asked of the server itself and of its connections; what works on data stands in tables, see commands.hpp.

namespace latchkey::model {

namespace {

std::string line_of(std::uint64_t id, std::string const& address, std::string const& name, std::size_t channels) {
  return "id=" + std::to_string(id) + " addr=" + address + " laddr=127.0.0.1:6379 fd=8 name=" + name +
         " db=0 sub=" + std::to_string(channels) + " psub=0 resp=2\n";
}

// With the least number of words.
struct own_command {
  std::string_view name;
  std::size_t words;
};
constexpr own_command own_commands[] = {
    {"auth", 2},       {"client", 2},    {"dbsize", 1},       {"echo", 2},        {"eval", 3},    {"evalsha", 3},
    {"exec", 1},       {"flushall", 1},  {"info", 1},         {"keys", 2},        {"monitor", 1}, {"multi", 1},
    {"ping", 1},       {"pubsub", 2},    {"role", 1},         {"scan", 2},        {"script", 2},  {"select", 2},
    {"ssubscribe", 2}, {"subscribe", 2}, {"sunsubscribe", 1}, {"unsubscribe", 1}, {"wait", 3}};
constexpr std::string_view subcommands[] = {"client|id",      "client|info",     "client|kill",   "client|list",
                                            "client|setname", "pubsub|channels", "pubsub|numsub", "pubsub|shardnumsub",
                                            "script|exists",  "script|flush",    "script|load"};

own_command const* find_own(std::string_view name) {
  for (auto const& one : own_commands)
    if (is(name, one.name)) return &one;
  return nullptr;
}

// The whole name, `client|kill`; of commands without subcommands their name.
std::string whole_name(words_view words) {
  bool const has_more = is(words[0], "client") || is(words[0], "script") || is(words[0], "pubsub");
  return has_more && words.size() > 1 ? lower(words[0]) + '|' + lower(words[1]) : lower(words[0]);
}

}  // namespace

bool server::is_known(std::string_view command) {
  auto const same = [&](std::string_view one) { return is(command, one); };
  return find_command(command) || find_own(command) ||
         std::any_of(std::begin(subcommands), std::end(subcommands), same);
}

void server::fail(std::string_view command, std::string_view words, int times) {
  failures_.push_back({lower(command), std::string(words), times});
}

// Used up by the question.
std::optional<std::string> server::failure_of(words_view words) {
  if (failures_.empty()) return std::nullopt;
  auto const meant = [&](auto const& one) { return one.command == whole_name(words) || is(words[0], one.command); };
  auto const found = std::find_if(failures_.begin(), failures_.end(), meant);
  if (found == failures_.end()) return std::nullopt;
  std::string said = found->words;
  if (--found->times == 0) failures_.erase(found);
  return said;
}

reply server::run(handle which, words_view words) {
  auto const& first = words[0];
  if (sick == sickness::says_a_word || (sick == sickness::says_it_later && !greets(words))) return error(word);
  if (auto const* const own = find_own(first); own && words.size() < own->words) return wrong_number(own->name);
  if (auto const failed = failure_of(words)) return error(*failed);
  if (is(first, "auth")) {
    bool const right = password.empty() || (words.back() == password && (words.size() == 2 || words[1] == user));
    if (!right) return error("WRONGPASS invalid username-password pair or user is disabled.");
    connections_.at(which).trusted = true;
    return ok();
  }
  if (!connections_.at(which).trusted) return error("NOAUTH Authentication required.");
  if (!denied.empty())
    if (auto const whole = whole_name(words); denied.contains(whole) || denied.contains(lower(first)))
      return error("NOPERM this user has no permissions to run the '" + whole + "' command");
  if (busy) return error("BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.");
  return run_here(which, words);
}

reply server::run_here(handle which, words_view words) {
  auto const& first = words[0];
  if (is(first, "multi") || is(first, "exec") || connections_.at(which).queued) return collect(which, words);
  if (is(first, "select")) return ok();
  if (is(first, "client")) return run_client(which, words);
  for (bool const sharded : {false, true}) {
    auto const verb = sharded && is(first.substr(0, 1), "s") ? first.substr(1) : first;
    if (!is(verb, "subscribe") && !is(verb, "unsubscribe")) continue;
    subscribe(which, words, is(verb, "subscribe"), sharded);
    return {};
  }
  if (is(first, "role")) {
    if (read_only) return array({text("slave"), text("127.0.0.1"), number(6380), text("connected"), number(0)});
    reply followers = array();
    followers.elements.resize(replicas, array({text("127.0.0.1"), text("6380"), text("0")}));
    return array({text("master"), number(0), followers});
  }
  if (is(first, "wait")) return number(static_cast<std::int64_t>(synced_replicas));
  if (is(first, "info")) return info(words);
  if (loading) return error("LOADING Redis is loading the dataset in memory");
  if (is(first, "script")) return run_stored(words);
  if (is(first, "pubsub")) return run_pubsub(words);
  if (is(first, "ping"))
    return connections_.at(which).channels.empty() && connections_.at(which).sharded.empty()
               ? status("PONG")
               : array({text("pong"), text("")});
  if (is(first, "echo")) return text(words[1]);
  if (is(first, "monitor")) {
    connections_.at(which).monitors = true;
    ++monitors_;
    return ok();
  }
  if (is(first, "dbsize") || is(first, "keys") || is(first, "scan") || is(first, "flushall")) return run_keys(words);
  return execute(words);
}

reply server::info(words_view words) const {
  std::string made;
  if (words.size() > 1 && is(words[1], "commandstats")) {
    made = "# Commandstats\r\n";
    for (auto const& [name, count] : calls_)
      made += "cmdstat_" + name + ":calls=" + std::to_string(count) + ",usec=0\r\n";
    return text(made);
  }
  if (!version.empty()) made = "redis_version:" + version + "\r\n";
  if (!run_id.empty()) made += "run_id:" + run_id + "\r\n";
  return text("# Server\r\n" + made + "# Clients\r\nconnected_clients:" + std::to_string(connections_.size()) + "\r\n");
}

// MULTI, what follows, and EXEC.
reply server::collect(handle which, words_view words) {
  auto& queued = connections_.at(which).queued;
  if (is(words[0], "multi")) {
    if (queued) return error("ERR MULTI calls can not be nested");
    queued.emplace();
    return ok();
  }
  if (!is(words[0], "exec")) {
    queued->emplace_back(words.begin(), words.end());
    return status("QUEUED");
  }
  if (!queued) return error("ERR EXEC without MULTI");
  auto const all = *std::exchange(queued, std::nullopt);
  reply made = array();
  for (auto const& one : all) made.elements.push_back(run_here(which, one));
  return made;
}

// All keys at once; SCAN takes no options.
reply server::run_keys(words_view words) {
  if (is(words[0], "flushall")) {
    data.clear();
    return ok();
  }
  auto const all = data.keys();
  if (is(words[0], "dbsize")) return number(static_cast<std::int64_t>(all.size()));
  bool const scans = is(words[0], "scan");
  reply made = array();
  for (auto const& key : all)
    if (scans || ::fnmatch(words[1].c_str(), key.c_str(), 0) == 0) made.elements.push_back(text(key));
  return scans ? array({text("0"), std::move(made)}) : made;
}

// To those who MONITOR.
void server::show(handle which, words_view words) {
  auto const& from = connections_.at(which).address;
  std::string line = std::to_string(data.microseconds / 1'000'000) + ".0 [0 " +
                     (from.starts_with('/') ? "unix:" + from.substr(0, from.rfind(':')) : from) + "]";
  for (auto const& one : words) ((line += " \"") += one) += '"';
  std::replace(line.begin(), line.end(), '\r', ' ');
  std::replace(line.begin(), line.end(), '\n', ' ');
  for (auto const& [to, one] : connections_)
    if (one.monitors) answer(to, status(line));
}

std::string server::clients() const {
  std::string made;
  for (auto const& [which, one] : connections_) made += line_of(one.id, one.address, one.name, one.channels.size());
  return made;
}

reply server::run_client(handle which, words_view words) {
  connection& own = connections_.at(which);
  auto const& what = words[1];
  if (is(what, "setname")) {
    if (words.size() != 3) return wrong_number("client|setname");
    own.name = words[2];
    return ok();
  }
  if (is(what, "id")) return number(static_cast<std::int64_t>(own.id));
  if (is(what, "info")) return text(line_of(own.id, own.address, own.name, own.channels.size()));
  if (is(what, "list") && words.size() == 2) return text(clients());
  if (words.size() < 4) return error("ERR syntax error");
  if (is(what, "kill")) return kill(words);
  if (!is(what, "list")) return error("ERR unknown subcommand");
  std::uint64_t asked = 0;
  std::from_chars(words[3].data(), words[3].data() + words[3].size(), asked);
  for (auto const& [there, one] : connections_)
    if (one.id == asked) return text(line_of(one.id, one.address, one.name, one.channels.size()));
  return text("");
}

// By ID, and ADDR behind it.
reply server::kill(words_view words) {
  if (refuses_kill) return error("NOPERM this user has no permissions to run the 'client|kill' command");
  std::uint64_t asked = 0;
  std::from_chars(words[3].data(), words[3].data() + words[3].size(), asked);
  auto found = connections_.begin();
  while (found != connections_.end() && found->second.id != asked) ++found;
  if (found == connections_.end() || (words.size() == 6 && words[5] != found->second.address)) return number(0);
  handle const gone = found->first;
  connections_.erase(found);
  user_.dropped(gone);
  return number(1);
}

// SCRIPT.
reply server::run_stored(words_view words) {
  auto const& what = words[1];
  if (is(what, "flush")) {
    flush_scripts();
    return ok();
  }
  if (is(what, "load")) {
    if (words.size() != 3) return wrong_number("script|load");
    std::string problem;
    std::string const& sha = scripts_.load(words[2], problem);
    if (sha.empty()) return error(problem);
    loaded_.insert(sha);
    return text(sha);
  }
  if (!is(what, "exists")) return error("ERR unknown subcommand");
  reply there = array();
  for (auto const& sha : words.subspan(2)) there.elements.push_back(number(loaded_.contains(lower(sha)) ? 1 : 0));
  return there;
}

reply server::run_pubsub(words_view words) const {
  bool const shards = is(words[1], "shardnumsub");
  std::map<std::string, std::int64_t, std::less<>> listeners;
  for (auto const& [which, one] : connections_)
    for (auto const& channel : shards ? one.sharded : one.channels) ++listeners[channel];
  reply made = array();
  if (is(words[1], "channels")) {
    for (auto const& [channel, count] : listeners) made.elements.push_back(text(channel));
    return made;
  }
  if (!shards && !is(words[1], "numsub")) return error("ERR unknown subcommand");
  for (auto const& channel : words.subspan(2)) {
    auto const found = listeners.find(channel);
    made.elements.push_back(text(channel));
    made.elements.push_back(number(found == listeners.end() ? 0 : found->second));
  }
  return made;
}

}  // namespace latchkey::model
