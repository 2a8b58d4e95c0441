#include <support/unit/fake_server.hpp>

#include <charconv>

namespace latchkey::test {

namespace {

constexpr std::string_view probed_id = "9223372036854775807";

// The end of the line of CLIENT INFO is like a real one's: more pairs, then a line end.
std::string client_line(fake_server::id which, std::string const& address) {
  return "id=" + std::to_string(which) + " addr=" + address + " laddr=127.0.0.1:6379 fd=8 name= db=0 resp=2\n";
}

}  // namespace

// As it stands in the log and is compared with refusals: the script's name instead of its SHA-1 and the count of keys.
std::string fake_server::shown(command const& words) const {
  std::string made;
  for (std::size_t i = 0; i < words.size(); ++i) {
    bool const script = i > 0 && words[0].starts_with("EVAL");
    if (script && i == 2) continue;
    std::string word = words[i];
    if (script && i == 1) {
      std::string const sha(words[0] == "EVAL" ? detail::script(word).sha() : std::string_view(word));
      auto const found = names_.find(sha);
      word = found == names_.end() ? "unknown" : found->second;
    }
    if (words[0] == "SCRIPT" && i > 1 && names_.contains(word)) word = names_.at(word);
    if (words[0] == "CLIENT" && words.size() == 4 && words[3] == probed_id && i == 1) word = "PROBE";
    made += (i == 0 ? "" : " ") + word;
  }
  return made;
}

reply fake_server::run(id which, command const& words) {
  std::string const text = shown(words);
  log.push_back(text);
  connection& one = connections_.at(which);
  for (auto it = refusals_.begin(); it != refusals_.end(); ++it) {
    if (!text.starts_with(it->start)) continue;
    reply const said = error(it->text);
    if (it->times > 0 && --it->times == 0) refusals_.erase(it);
    return said;
  }
  auto const& first = words[0];
  if (first == "AUTH") {
    bool const right = words.back() == password && (words.size() == 2 || words[1] == user);
    one.trusted = one.trusted || right;
    return right ? status("OK") : error("WRONGPASS invalid username-password pair or user is disabled.");
  }
  if (!one.trusted) return error("NOAUTH Authentication required.");
  if (first == "INFO") return bulk("# Server\r\n" + (run_id.empty() ? "" : "run_id:" + run_id + "\r\n"));
  if (first == "SELECT") return status("OK");
  if (first == "PING") return one.channels.empty() ? status("PONG") : array({bulk("pong"), bulk("")});
  if (first == "ROLE") {
    if (replica) return array({bulk("slave"), bulk("127.0.0.1"), integer(6380), bulk("connected"), integer(0)});
    return array({bulk("master"), integer(0), array({})});
  }
  if (first == "CLIENT") return run_client(which, words);
  if (first == "SCRIPT") {
    reply there = array({});
    for (std::size_t i = 2; i < words.size(); ++i)
      there.elements.push_back(integer(loaded_.contains(words[i]) ? 1 : 0));
    return there;
  }
  if (first == "SUBSCRIBE" || first == "UNSUBSCRIBE") {
    bool const in = first == "SUBSCRIBE";
    if (in)
      one.channels.insert(words.at(1));
    else
      one.channels.erase(words.at(1));
    return array({bulk(in ? "subscribe" : "unsubscribe"), bulk(words[1]),
                  integer(static_cast<std::int64_t>(one.channels.size()))});
  }
  if (first == "EVAL" || first == "EVALSHA") return run_script(words);
  return run_query(words);
}

reply fake_server::run_client(id which, command const& words) {
  auto const& what = words.at(1);
  if (what == "SETNAME") return status("OK");
  if (what == "INFO") return bulk(client_line(which, connections_.at(which).address));
  id asked = 0;
  std::from_chars(words.at(3).data(), words[3].data() + words[3].size(), asked);
  auto const found = connections_.find(asked);
  bool const there = found != connections_.end() && !found->second.killed;
  if (what == "LIST")
    return bulk(there ? client_line(asked, lane_address.empty() ? found->second.address : lane_address) : "");
  if (what != "KILL") return error("ERR unknown subcommand");
  if (!there || (words.size() == 6 && words[5] != found->second.address)) return integer(0);
  end(asked);
  return integer(1);
}

reply fake_server::run_script(command const& words) {
  std::string sha = words.at(1);
  if (words[0] == "EVAL") {
    sha = detail::script(words[1]).sha();
    if (bodies_.contains(sha)) loaded_.insert(sha);
  }
  if (!loaded_.contains(sha)) return error("NOSCRIPT No matching script. Please use EVAL.");
  std::size_t const keys = static_cast<std::size_t>(std::stoul(words.at(2)));
  words_view const all(words);
  script_world w{store,
                 [this](std::string_view channel, std::string_view payload) { return publish(channel, payload); }};
  return bodies_.at(sha)(w, all.subspan(3, keys), all.subspan(3 + keys));
}

reply fake_server::run_query(command const& words) {
  auto const& first = words[0];
  auto const& key = words.at(1);
  if (first == "EXISTS") return integer(store.find(key) || store.foreign.contains(key) ? 1 : 0);
  if (store.foreign.contains(key) && first != "PTTL")
    return error("WRONGTYPE Operation against a key holding the wrong kind of value");
  if (first == "HEXISTS") return integer(store.has(key, words.at(2)) ? 1 : 0);
  if (first == "HGET") return store.has(key, words.at(2)) ? bulk(std::to_string(store.count(key, words[2]))) : reply{};
  if (first == "GET") return store.has(key, "value") ? bulk(std::to_string(store.count(key, "value"))) : reply{};
  if (first == "PTTL") return integer(store.ttl(key));
  return error("ERR unknown command '" + first + "'");
}

std::string encoded(reply const& said) {
  switch (said.kind) {
    case reply::type::nil: return "$-1\r\n";
    case reply::type::integer: return ":" + std::to_string(said.integer) + "\r\n";
    case reply::type::string: return "$" + std::to_string(said.text.size()) + "\r\n" + said.text + "\r\n";
    case reply::type::status: return "+" + said.text + "\r\n";
    case reply::type::error: return "-" + said.text + "\r\n";
    case reply::type::array: break;
  }
  std::string made = "*" + std::to_string(said.elements.size()) + "\r\n";
  for (auto const& element : said.elements) made += encoded(element);
  return made;
}

}  // namespace latchkey::test
