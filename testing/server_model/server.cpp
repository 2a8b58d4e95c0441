#include <server_model/server.hpp>

#include <algorithm>
#include <stdexcept>

namespace latchkey::model {

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
  connections_.emplace(made, connection{next_id_++, std::move(address), {}, password.empty(), {}, {}, false, {}});
  return made;
}

void server::arrive(handle which, std::string_view bytes) {
  auto const found = connections_.find(which);
  if (found == connections_.end()) return;
  found->second.reader.feed(bytes);
  std::vector<std::string> words;
  for (reply got; connections_.contains(which);) {
    auto const read = found->second.reader.next(got);
    if (read == detail::reply_reader::result::more) return;
    words.clear();
    for (auto& element : got.elements) words.push_back(std::move(element.text));
    if (read == detail::reply_reader::result::malformed || !got.is_array()) {
      answer(which, error("ERR Protocol error"));
      hang_up(which);
      return;
    }
    if (words.empty()) continue;
    if (!serve(which, words)) return;
  }
}

namespace {

bool subscribes(std::string_view command) {
  if (is(command.substr(0, 1), "s") && !is(command, "subscribe")) command.remove_prefix(1);
  return is(command, "subscribe") || is(command, "unsubscribe");
}

}  // namespace

bool server::serve(handle which, words_view words) {
  ++commands;
  bool const hangs = hangs_up_on(words);
  // Every other one hears nothing more.
  if (hangs && (which % 2 == 0 || sick == sickness::hangs_up)) return hang_up(which);
  if (monitors_ > 0) show(which, words);
  ++calls_[lower(words[0])];
  reply const said = run(which, words);
  user_.ran(which, words, said);
  bool const said_by_itself = subscribes(words[0]);
  if (!said_by_itself || said.is_error()) answer(which, said);
  return !hangs || hang_up(which);
}

// What a client says before it asks for anything.
bool server::greets(words_view words) {
  auto const& first = words[0];
  if (is(first, "client")) return !is(words[1], "kill") || words.size() == 4;  // the probe names no address
  return is(first, "auth") || is(first, "select") || is(first, "role") || is(first, "info") || is(first, "script");
}

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
  if (!run_id.empty()) run_id += '.' + std::to_string(starts_);  // no other process has it
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
    if (counts(which)) count += one.channels.size() + one.sharded.size();
  return count;
}

// --- commands ---

reply server::execute(words_view words) {
  if (is(words[0], "eval") || is(words[0], "evalsha")) return run_script(words);
  command const* const found = find_command(words[0]);
  if (!found) return error("ERR unknown command '" + words[0] + "'");
  if (!found->takes(words.size())) return wrong_number(lower(words[0]));
  if (read_only && (found->flags & command::writes))
    return error("READONLY You can't write against a read only replica.");
  if (full && (found->flags & command::needs_memory))
    return error("OOM command not allowed when used memory > 'maxmemory'.");
  surroundings at{data, *this, denied};
  return found->run(at, words);
}

reply server::run_script(words_view words) {
  if (words.size() < 3) return wrong_number(lower(words[0]));
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
  surroundings at{data, *this, denied};
  if (auto const other = replaced_.find(sha); other != replaced_.end()) sha = other->second;
  return scripts_.run(sha, words.subspan(3, count), words.subspan(3 + count), at, full, read_only);
}

void server::subscribe(handle which, words_view words, bool in, bool sharded) {
  connection& one = connections_.at(which);
  auto& channels = sharded ? one.sharded : one.channels;
  std::string const kind = sharded ? "s" : "";
  for (auto const& channel : words.subspan(1)) {
    if (in) {
      channels.insert(channel);
      listeners_[sharded][channel].insert(which);
    } else {
      channels.erase(channel);
    }
    answer(which, array({text(kind + (in ? "subscribe" : "unsubscribe")), text(channel),
                         number(static_cast<std::int64_t>(channels.size()))}));
  }
}

void server::end_channels(std::function<bool(std::string_view)> const& gone) {
  for (auto& [which, one] : connections_)
    for (auto it = one.sharded.begin(); it != one.sharded.end();) {
      if (!gone(*it)) {
        ++it;
        continue;
      }
      std::string const channel = *it;
      it = one.sharded.erase(it);
      answer(which,
             array({text("sunsubscribe"), text(channel), number(static_cast<std::int64_t>(one.sharded.size()))}));
    }
}

reply server::publish(std::string_view channel, std::string_view payload, bool sharded) {
  if (refuses_publish) return error("NOPERM this user has no permissions to access one of the channels");
  user_.published(channel);
  bool const lost = lose_messages > 0;
  bool const twice = !lost && double_messages > 0;
  lose_messages -= lost;
  lost_messages += lost;
  double_messages -= twice;
  std::int64_t heard = 0;
  auto const found = listeners_[sharded].find(channel);
  if (found == listeners_[sharded].end()) return number(0);
  for (auto it = found->second.begin(); it != found->second.end();) {
    handle const which = *it;
    auto const there = connections_.find(which);
    bool const listens =
        there != connections_.end() && (sharded ? there->second.sharded : there->second.channels).contains(channel);
    if (!listens) {
      it = found->second.erase(it);
      continue;
    }
    ++it;
    ++heard;
    for (int times = lost || mute ? 0 : twice ? 2 : 1; times > 0; --times)
      answer(which,
             array({text(sharded ? "smessage" : "message"), text(std::string(channel)), text(std::string(payload))}));
  }
  if (found->second.empty()) listeners_[sharded].erase(found);
  return number(heard);
}

}  // namespace latchkey::model
