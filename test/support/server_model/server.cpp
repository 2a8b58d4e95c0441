#include <support/server_model/server.hpp>

#include <algorithm>
#include <charconv>
#include <stdexcept>

namespace latchkey::model {

namespace {

std::string line_of(std::uint64_t id, std::string const& address) {
  return "id=" + std::to_string(id) + " addr=" + address + " laddr=127.0.0.1:6379 fd=8 name= db=0 resp=2\n";
}

// `name` is in small letters.
bool is(std::string_view word, std::string_view name) {
  return std::equal(word.begin(), word.end(), name.begin(), name.end(),
                    [](char a, char b) { return a == b || (a >= 'A' && a <= 'Z' && a + ('a' - 'A') == b); });
}

}  // namespace

char const* name_of(server::sickness what) {
  constexpr char const* names[] = {"is well",
                                   "says one word to everything",
                                   "greets, and then says one word",
                                   "turns everybody away",
                                   "hangs up behind the handshake",
                                   "drops whoever listens"};
  return names[static_cast<std::size_t>(what)];
}

// --- connections ---

server::handle server::accept() {
  handle const made = next_handle_++;
  std::string address = on_unix_socket ? "/run/redis.sock:0" : "127.0.0.1:" + std::to_string(next_port++);
  connections_.emplace(made, connection{next_id_++, std::move(address), password.empty(), {}, {}});
  return made;
}

void server::arrive(handle which, std::string_view bytes) {
  auto const found = connections_.find(which);
  if (found == connections_.end()) return;
  found->second.reader.feed(bytes);
  std::vector<std::string> words;
  for (reply got; connections_.contains(which);) {
    if (found->second.reader.next(got) != detail::reply_reader::result::reply) return;
    words.clear();
    for (auto& element : got.elements) words.push_back(std::move(element.text));
    if (!serve(which, words)) return;
  }
}

bool server::serve(handle which, words_view words) {
  ++commands;
  bool const hangs = hangs_up_on(words);
  // Every other one hears nothing more.
  if (hangs && (which % 2 == 0 || sick == sickness::hangs_up)) return hang_up(which);
  reply const said = run(which, words);
  user_.ran(which, words, said);
  bool const said_by_itself = is(words[0], "subscribe") || is(words[0], "unsubscribe");
  if (!said_by_itself || said.is_error()) answer(which, said);
  return !hangs || hang_up(which);
}

namespace {

// What a client says before it asks for anything.
bool greets(words_view words) {
  auto const& first = words[0];
  if (is(first, "client")) return !is(words[1], "kill") || words.size() == 4;  // the probe names no address
  return is(first, "auth") || is(first, "select") || is(first, "role") || is(first, "info") || is(first, "script");
}

}  // namespace

bool server::hangs_up_on(words_view words) const {
  switch (sick) {
    case sickness::turns_away: return true;
    case sickness::hangs_up: return !greets(words);
    case sickness::drops_listeners: return is(words[0], "subscribe");
    default: return false;
  }
}

bool server::hang_up(handle which) {
  connections_.erase(which);
  user_.hung_up(which);
  return false;
}

void server::end_of_file(handle which) { connections_.erase(which); }

void server::answer(handle which, reply const& said) {
  if (!connections_.contains(which)) return;
  std::string bytes;
  encode(said, bytes);
  user_.answered(which, std::move(bytes));
}

void server::restart(bool with_data) {
  auto const all = std::move(connections_);
  connections_.clear();
  for (auto const& [which, one] : all) user_.dropped(which);
  if (!with_data) data.clear();
  loaded_.clear();
  next_id_ = 1;
  ++starts_;
  if (!run_id.empty()) run_id = std::to_string(starts_);
}

std::string const& server::load(std::string_view text) {
  std::string problem;
  std::string const& sha = scripts_.load(text, problem);
  if (sha.empty()) throw std::invalid_argument(problem);
  return *loaded_.insert(sha).first;
}

void server::replace(std::string const& sha, std::string_view text) { replaced_[sha] = load(text); }

std::size_t server::subscriptions(std::function<bool(handle)> const& counts) const {
  std::size_t count = 0;
  for (auto const& [which, one] : connections_)
    if (counts(which)) count += one.channels.size();
  return count;
}

// --- commands ---

reply server::execute(words_view words) {
  if (is(words[0], "eval") || is(words[0], "evalsha")) return run_script(words);
  command const* const found = find_command(words[0]);
  if (!found) return error("ERR unknown command '" + words[0] + "'");
  if (!found->takes(words.size())) return error("ERR wrong number of arguments for '" + lower(words[0]) + "' command");
  if (read_only && (found->flags & command::writes))
    return error("READONLY You can't write against a read only replica.");
  if (full && (found->flags & command::needs_memory))
    return error("OOM command not allowed when used memory > 'maxmemory'.");
  surroundings at{data, *this};
  return found->run(at, words);
}

reply server::run(handle which, words_view words) {
  auto const& first = words[0];
  if (sick == sickness::says_a_word || (sick == sickness::says_it_later && !greets(words))) return error(word);
  if (is(first, "auth")) {
    bool const right = password.empty() || (words.back() == password && (words.size() == 2 || words[1] == user));
    if (!right) return error("WRONGPASS invalid username-password pair or user is disabled.");
    connections_.at(which).trusted = true;
    return ok();
  }
  if (!connections_.at(which).trusted) return error("NOAUTH Authentication required.");
  if (busy) return error("BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.");
  if (is(first, "select")) return ok();
  if (is(first, "client")) return run_client(which, words);
  if (is(first, "subscribe") || is(first, "unsubscribe")) {
    subscribe(which, words, is(first, "subscribe"));
    return {};
  }
  if (is(first, "role")) {
    if (read_only) return array({text("slave"), text("127.0.0.1"), number(6380), text("connected"), number(0)});
    return array({text("master"), number(0), array()});
  }
  if (is(first, "info")) return text("# Server\r\n" + (run_id.empty() ? "" : "run_id:" + run_id + "\r\n"));
  if (loading) return error("LOADING Redis is loading the dataset in memory");
  if (is(first, "script")) {
    reply there = array();
    for (auto const& sha : words.subspan(2)) there.elements.push_back(number(loaded_.contains(lower(sha)) ? 1 : 0));
    return there;
  }
  if (is(first, "ping"))
    return connections_.at(which).channels.empty() ? status("PONG") : array({text("pong"), text("")});
  return execute(words);
}

reply server::run_client(handle which, words_view words) {
  connection const& own = connections_.at(which);
  auto const& what = words[1];
  if (is(what, "setname")) return ok();
  if (is(what, "info")) return text(line_of(own.id, own.address));
  if (words.size() < 4) return error("ERR syntax error");
  std::uint64_t asked = 0;
  std::from_chars(words[3].data(), words[3].data() + words[3].size(), asked);
  auto found = connections_.begin();
  while (found != connections_.end() && found->second.id != asked) ++found;
  bool const there = found != connections_.end();
  if (refuses_kill && is(what, "kill"))
    return error("NOPERM this user has no permissions to run the 'client|kill' command");
  if (is(what, "list")) return text(there ? line_of(asked, found->second.address) : "");
  if (!is(what, "kill")) return error("ERR unknown subcommand");
  if (!there || (words.size() == 6 && words[5] != found->second.address)) return number(0);
  handle const gone = found->first;
  connections_.erase(found);
  user_.dropped(gone);
  return number(1);
}

reply server::run_script(words_view words) {
  if (words.size() < 3) return error("ERR wrong number of arguments for '" + lower(words[0]) + "' command");
  auto const keys = integer_of(words[2]);
  if (!keys) return not_an_integer();
  if (*keys < 0) return error("ERR Number of keys can't be negative");
  auto const count = static_cast<std::size_t>(*keys);
  if (count + 3 > words.size()) return error("ERR Number of keys can't be greater than number of args");
  std::string sha = lower(words[1]);
  if (is(words[0], "eval")) {
    std::string problem;
    sha = scripts_.load(words[1], problem);
    if (sha.empty()) return error(problem);
    loaded_.insert(sha);
  }
  if (!loaded_.contains(sha)) return error("NOSCRIPT No matching script. Please use EVAL.");
  surroundings at{data, *this};
  if (auto const other = replaced_.find(sha); other != replaced_.end()) sha = other->second;
  return scripts_.run(sha, words.subspan(3, count), words.subspan(3 + count), at, full, read_only);
}

void server::subscribe(handle which, words_view words, bool in) {
  auto& channels = connections_.at(which).channels;
  for (auto const& channel : words.subspan(1)) {
    if (in)
      channels.insert(channel);
    else
      channels.erase(channel);
    answer(which, array({text(in ? "subscribe" : "unsubscribe"), text(channel),
                         number(static_cast<std::int64_t>(channels.size()))}));
  }
}

reply server::publish(std::string_view channel, std::string_view payload) {
  if (refuses_publish) return error("NOPERM this user has no permissions to access one of the channels");
  user_.published(channel);
  bool const lost = lose_messages > 0;
  bool const twice = !lost && double_messages > 0;
  lose_messages -= lost;
  lost_messages += lost;
  double_messages -= twice;
  std::int64_t heard = 0;
  for (auto const& [which, one] : connections_) {
    if (!one.channels.contains(channel)) continue;
    ++heard;
    for (int times = lost || mute ? 0 : twice ? 2 : 1; times > 0; --times)
      answer(which, array({text("message"), text(std::string(channel)), text(std::string(payload))}));
  }
  return number(heard);
}

}  // namespace latchkey::model
