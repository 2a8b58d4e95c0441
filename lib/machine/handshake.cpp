#include <machine/connections.hpp>

#include <latchkey/error.hpp>
#include <latchkey/version.hpp>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <utility>

namespace latchkey::detail {

namespace {

using hello = sent_call::hello_step;

// The value of `key=` in a line of CLIENT INFO or CLIENT LIST.
std::string_view value_of(std::string_view line, std::string_view key) {
  for (std::size_t at = line.find(key); at != std::string_view::npos; at = line.find(key, at + 1)) {
    bool const whole_word = at == 0 || line[at - 1] == ' ';
    if (!whole_word || at + key.size() >= line.size() || line[at + key.size()] != '=') continue;
    auto const rest = line.substr(at + key.size() + 1);
    return rest.substr(0, rest.find_first_of(" \r\n"));
  }
  return {};
}

// In the answer to INFO.
std::string_view line_of(std::string_view text, std::string_view key) {
  auto const at = text.find(key);
  if (at == std::string_view::npos) return {};
  text.remove_prefix(at + key.size());
  return text.substr(0, text.find_first_of("\r\n"));
}

bool is_at_least(std::string_view version, std::pair<int, int> least) {
  int parts[2]{};
  char const* at = version.data();
  char const* const end = at + version.size();
  for (int& part : parts) {
    auto const [next, failed] = std::from_chars(at, end, part);
    if (failed != std::errc()) return false;
    at = next == end ? end : next + 1;
  }
  return std::pair(parts[0], parts[1]) >= least;
}

// Shown by CLIENT LIST. What the server says to it does not matter.
void name_library(link& connection, context& shared) {
  for (auto const& [what, is] : {std::pair("LIB-NAME", "latchkey"), std::pair("LIB-VER", LATCHKEY_VERSION)}) {
    words command;
    command.say("CLIENT", "SETINFO", what, is);
    connection.write(shared, command, {.what = sent_call::type::hello, .step = hello::library});
  }
  shared.out->turn = true;
}

// CLIENT SETINFO came with 7.2; one before would answer each with an error, and count it.
connections::facts facts_of(std::string_view info) {
  auto const version = line_of(info, "\nredis_version:");
  return {std::string(line_of(info, "\nrun_id:")), is_at_least(version, {7, 2}), is_at_least(version, {7, 0})};
}

// A node that may not be asked how old it is. The answer comes behind all others.
void ask_for_shards(link& connection, context& shared, connections::identity const& who) {
  if (!who.in_cluster || shared.settings.sharded_subscription) return;
  words command;
  command.say("PUBSUB", "SHARDNUMSUB");
  connection.write(shared, command, {.what = sent_call::type::hello, .step = hello::shards});
  shared.out->turn = true;
}

// One from before sharded channels does not know the name of what it refuses.
bool has_shards(reply const& answer) {
  return !answer.is_error() ||
         (answer.text.starts_with("NOPERM") && answer.text.find("shardnumsub") != std::string::npos);
}

bool awaits_shards(link const& connection) {
  auto const& all = connection.unanswered;
  return std::any_of(all.begin(), all.end(), [](auto const& call) { return call.step == hello::shards; });
}

// How its clock differs from ours by more than the margin, if it does. The server read it at some time between the
// question and now.
std::string clocks_apart(context const& shared, instant asked, reply const& answer) {
  if (!answer.is_array() || answer.elements.size() != 2) return {};  // it may not be asked
  std::int64_t parts[2]{};
  for (std::size_t i = 0; i < 2; ++i) {
    std::string_view const text = answer.elements[i].text;
    if (std::from_chars(text.data(), text.data() + text.size(), parts[i]).ec != std::errc()) return {};
  }
  auto const theirs = std::chrono::seconds(parts[0]) + std::chrono::microseconds(parts[1]);
  nanoseconds const ahead = theirs - shared.time_of_day();
  nanoseconds const behind = -ahead - (shared.now - asked);
  nanoseconds const apart = std::max(ahead, behind);
  if (apart <= shared.settings.clock_margin) return {};
  return "its clock is " + std::to_string(std::chrono::duration_cast<milliseconds>(apart).count()) +
         (ahead > behind ? " ms ahead of" : " ms behind") + " this machine's: more than clock_margin";
}

// CLIENT KILL of a connection that cannot exist: 0, or the refusal that a real one would meet.
constexpr std::string_view nobody = "9223372036854775807";

}  // namespace

// All steps leave in one write; no lock request goes before the last was answered.
void connections::greet(link& connection) {
  connection.at = link::state::greeting;
  auto const step = [&](hello what, std::initializer_list<std::string_view> said) {
    command_.clear();
    for (auto word : said) command_.add(word);
    connection.write(shared_, command_, {.what = sent_call::type::hello, .step = what, .sent = shared_.now});
  };
  if (!who_.password.empty() && who_.username.empty()) step(hello::auth, {"AUTH", who_.password});
  if (!who_.username.empty()) step(hello::auth, {"AUTH", who_.username, who_.password});
  if (who_.database != 0) step(hello::select, {"SELECT", std::to_string(who_.database)});
  if (!shared_.settings.client_name.empty()) step(hello::name, {"CLIENT", "SETNAME", shared_.settings.client_name});
  if (connection.of == role::shared) {
    server_.run_id.clear();
    step(hello::role, {"ROLE"});
    step(hello::server, {"INFO", "server"});
    step(hello::probe, {"CLIENT", "KILL", "ID", nobody});
    if (shared_.time_of_day) step(hello::time, {"TIME"});
    ask_for_scripts(connection);
  }
  if (connection.of != role::shared && server_.knows_libraries) name_library(connection, shared_);
  step(hello::info, {"CLIENT", "INFO"});
}

// A script that is not there goes whole at its first use, which would have cost a way to the server and back to hear.
void connections::ask_for_scripts(link& connection) {
  asked_for_ = shared_.scripts;
  command_.say("SCRIPT", "EXISTS");
  for (script const* text : asked_for_) command_.add(text->sha());
  if (!asked_for_.empty())
    connection.write(shared_, command_, {.what = sent_call::type::hello, .step = hello::scripts});
}

// A server that does not say is asked by EVALSHA.
void connections::learn_scripts(reply const& answer) {
  if (!answer.is_array() || answer.elements.size() != asked_for_.size()) return;
  for (std::size_t i = 0; i < asked_for_.size(); ++i)
    if (answer.elements[i].is_integer() && answer.elements[i].integer == 0) user_.on_unknown(*asked_for_[i]);
}

void connections::on_hello(link& connection, sent_call const& call, reply const& answer) {
  if (call.step == hello::library) return;
  if (call.step == hello::scripts) return learn_scripts(answer);
  if (call.step == hello::shards) server_.shards_channels = has_shards(answer);
  if (call.step == hello::shards) return greeted(connection);
  if (call.step == hello::time) {
    if (auto const text = clocks_apart(shared_, call.sent, answer); !text.empty())
      shared_.note(event_type::warning, {}, 0, {}, who_.says(text));
    return;
  }
  if (answer.is_error()) {
    auto const why = classify(answer.text);
    if (why.code == errc::auth_failed || call.step == hello::auth || call.step == hello::select) {
      // A server that does not know AUTH repeats its arguments: no word that may hold the password is passed on.
      bool const quotes = call.step == hello::auth && answer.text.find("unknown command") != std::string::npos;
      std::string_view const text = quotes ? std::string_view("the server does not know AUTH") : answer.text;
      return why.transient ? failed(connection, why.code, text, true)
                           : failed(connection, errc::auth_failed, text, false);
    }
    if (why.executed == server_error::ran::no && why.transient) return failed(connection, why.code, answer.text, true);
    // Protected mode: said to whoever comes from elsewhere, until somebody changes a setting.
    if (answer.text.starts_with("DENIED")) return failed(connection, why.code, answer.text, false);
    // A name that nobody has asked for may be refused.
    bool const announced = shared_.settings.announce && shared_.settings.client_name.starts_with("latchkey:");
    if (call.step == hello::name && !announced) shared_.note(event_type::warning, {}, 0, why.code, answer.text);
    if (call.step == hello::probe) user_.on_kill_refused(answer.text);
    if (call.step == hello::server) ask_for_shards(connection, shared_, who_);
    if (call.step != hello::info) return;
    user_.on_kill_refused(answer.text);
    return greeted(connection);
  }
  switch (call.step) {
    case hello::role:
      // A replica answers a busy lock like its primary does, but never grants: callers would wait for nothing.
      // Whoever is aside has only KILLs to say.
      if (!aside_ && answer.is_array() && !answer.elements.empty() && answer.elements[0].text == "slave") {
        failed(connection, errc::read_only, "connected to a replica", true);
        user_.misled();
      } else if (answer.is_array() && answer.elements.size() > 2) {
        user_.on_replicas(answer.elements[2].elements.size(), call.sent);
      }
      return;
    case hello::server:
      server_ = facts_of(answer.text);
      if (server_.knows_libraries) name_library(connection, shared_);
      return;
    case hello::probe:
      return answer.is_integer() ? user_.on_kill_allowed()
                                 : failed(connection, errc::protocol_error, "unexpected answer to CLIENT KILL", false);
    case hello::info:
      connection.id = value_of(answer.text, "id");
      connection.address = value_of(answer.text, "addr");
      if (connection.id.empty() || connection.address.empty())
        user_.on_kill_refused("CLIENT INFO names neither id nor address");
      return greeted(connection);
    default:
      if (answer.kind != reply::type::status)
        failed(connection, errc::protocol_error, "unexpected answer in the handshake", false);
  }
}

void connections::on_role(link& connection, reply const& answer, instant asked) {
  if (!answer.is_array() || answer.elements.empty()) return;  // it may not be asked
  if (answer.elements[0].text != "slave") {
    if (answer.elements.size() > 2) user_.on_replicas(answer.elements[2].elements.size(), asked);
    return;
  }
  discard(connection, errc::read_only, "the server has become a replica");
  user_.misled();
}

void connections::greeted(link& connection) {
  if (awaits_shards(connection)) return;
  if (connection.of == role::shared) {
    if (server_.run_id.empty() && has_no_address(connection.address) && !connection.was_up)
      shared_.note(event_type::warning, {}, 0, errc::server_error,
                   "INFO names no run_id: on a Unix socket CLIENT KILL may meet another client after a restart");
    return ready(connection);
  }
  link& leader = of(role::shared);
  if (leader.at != link::state::up) return discard(connection, errc::connection_lost);
  // A virtual address may have led elsewhere: the shared connection must see this one, under its address.
  if (connection.id.empty()) {
    check_refused_ = true;
    return connection.of == role::direct ? discard(connection, errc::server_error, "cannot be checked")
                                         : ready(connection);
  }
  connection.at = link::state::checking;
  command_.say("CLIENT", "LIST", "ID", connection.id);
  leader.write(shared_, command_, {.what = sent_call::type::check, .serial = connection.serial});
  shared_.out->turn = true;
}

void connections::on_check(sent_call const& call, reply const& answer) {
  link* connection = find(call.serial);
  if (!connection || connection->at != link::state::checking) return;
  if (answer.is_error()) {
    if (!check_refused_) shared_.note(event_type::lane_unchecked, {}, 0, errc::server_error, answer.text);
    check_refused_ = true;
    return connection->of == role::direct ? discard(*connection, errc::server_error, answer.text) : ready(*connection);
  }
  if (value_of(answer.text, "id") == connection->id && value_of(answer.text, "addr") == connection->address)
    return ready(*connection);
  discard(*connection, errc::connection_lost, "the address leads to another server");
}

}  // namespace latchkey::detail
