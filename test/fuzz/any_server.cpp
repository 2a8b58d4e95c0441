#include <fuzz/any_server.hpp>
#include <fuzz/input.hpp>
#include <wire/script.hpp>

#include <algorithm>
#include <map>

namespace latchkey::fuzz {
namespace {

using detail::ask;
using detail::reply;

reply number(std::int64_t value) { return {.kind = reply::type::integer, .integer = value}; }
reply text(std::string value) { return {.kind = reply::type::string, .text = std::move(value)}; }
reply list(std::vector<reply> all) { return {.kind = reply::type::array, .elements = std::move(all)}; }

// Elements of answers of all scripts, the hopeful ones first.
std::vector<reply> const& elements() {
  static std::vector<reply> const all{number(-3),
                                      list({number(-3), text("7")}),
                                      list({number(-5), number(-3)}),
                                      list({number(-5), list({number(-3), text("8")})}),
                                      number(-5),
                                      number(-9),
                                      list({number(1), number(1)}),
                                      number(-7),
                                      number(-8),
                                      number(20'000),
                                      number(-1),
                                      number(0),
                                      number(-4),
                                      number(-6),
                                      number(-10),
                                      number(-11),
                                      list({number(-3), number(500)}),
                                      list({number(0), number(0)}),
                                      list({number(-8), number(-3)}),
                                      list({number(-8), number(900)}),
                                      list({number(-5), text("ERR no")}),
                                      text("OOM command not allowed when used memory > 'maxmemory'."),
                                      text("READONLY You can't write against a read only replica.")};
  return all;
}

// What a script can answer for one item, and how many keys an item has.
struct known_script {
  std::size_t keys = 1;
  std::vector<reply> answers{};
};

known_script look_up(known_kind const& of, ask what, unsigned char which) {
  known_script made;
  detail::words keys;
  detail::item one{.what = what, .name = "k", .field = "f:1", .to_field = "f:2", .command = which};
  of.which->add_keys(one, keys);
  made.keys = std::max<std::size_t>(keys.size(), 1);
  for (auto const& element : elements()) {
    bool known = false;
    for (std::int64_t target : {0, 1, 2})
      for (bool again : {false, true}) {
        one.target = target;
        one.repeated = again;
        one.bundled = what == ask::acquire;
        known = known || of.which->read(what, one, element).what != detail::outcome::type::malformed;
      }
    if (known) made.answers.push_back(element);
  }
  return made;
}

std::map<std::string, known_script, std::less<>> const& scripts() {
  static auto const all = [] {
    std::map<std::string, known_script, std::less<>> made;
    auto const add = [&made](detail::script const& one, known_script const& known) {
      made.emplace(one.sha(), known);
      made.emplace(one.text(), known);
    };
    for (auto const& of : every_kind()) {
      for (ask what :
           {ask::acquire, ask::release, ask::hand_off, ask::renew, ask::extend, ask::force_unlock, ask::leave})
        if (has(of, what)) add(of.which->script_for(what), look_up(of, what, 0));
      if (of.which->acquire_all()) add(*of.which->acquire_all(), look_up(of, ask::acquire, 0));
      for (unsigned char i = 0; i < of.commands; ++i) add(of.which->command_script(i), look_up(of, ask::command, i));
    }
    return made;
  }();
  return all;
}

std::string script_answer(command const& asked, std::size_t which) {
  auto const found = scripts().find(asked[1]);
  // A question that is a script of two lines.
  if (found == scripts().end()) return ":1\r\n";
  std::size_t const items = std::max<std::size_t>(std::stoul(asked[2]) / found->second.keys, 1);
  auto const& answers = found->second.answers;
  std::string made = "*" + std::to_string(items) + "\r\n";
  for (std::size_t i = 0; i < items; ++i) write_reply(answers[(which + i * (which > 0)) % answers.size()], made);
  return made;
}

std::string client_answer(peer const& of, command const& asked) {
  auto const line = [](std::string const& id) {
    std::string made;
    write_reply(text("id=" + id + " addr=127.0.0.1:" + id + " laddr=127.0.0.1:6379\n"), made);
    return made;
  };
  if (asked[1] == "INFO") return line(std::to_string(of.serial));
  if (asked[1] == "LIST") return line(asked.back());
  if (asked[1] == "KILL") return ":1\r\n";
  return "+OK\r\n";
}

std::string subscription_answer(peer& of, command const& asked) {
  bool const begins = asked[0] == "SUBSCRIBE";
  std::erase(of.channels, asked[1]);
  if (begins) of.channels.push_back(asked[1]);
  std::string made;
  write_reply(list({text(begins ? "subscribe" : "unsubscribe"), text(asked[1]), number(1)}), made);
  return made;
}

}  // namespace

void peer::hear(std::string_view bytes) {
  reader.feed(bytes);
  for (reply one; reader.next(one) == detail::reply_reader::result::reply;) {
    auto& words = asked.emplace_back();
    for (auto const& word : one.elements) words.push_back(word.text);
    must(!words.empty(), "a client sends commands");
  }
}

std::string plausible(peer& of, command const& asked, std::size_t which) {
  auto const& name = asked[0];
  if (name == "EVALSHA" || name == "EVAL") return script_answer(asked, which);
  if (name == "CLIENT") return client_answer(of, asked);
  if (name == "SUBSCRIBE" || name == "UNSUBSCRIBE") return subscription_answer(of, asked);
  if (name == "ROLE") return "*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n";
  if (name == "SCRIPT") {
    std::string made = "*" + std::to_string(asked.size() - 2) + "\r\n";
    for (std::size_t i = 2; i < asked.size(); ++i) made += (which + i) % 2 == 0 ? ":1\r\n" : ":0\r\n";
    return made;
  }
  if (name == "PING" && !of.channels.empty()) return "*2\r\n$4\r\npong\r\n$0\r\n\r\n";
  if (name == "PING") return "+PONG\r\n";
  if (name == "HGET" || name == "GET") return "$1\r\n1\r\n";
  if (name == "AUTH" || name == "SELECT") return "+OK\r\n";
  return ":1\r\n";
}

}  // namespace latchkey::fuzz
