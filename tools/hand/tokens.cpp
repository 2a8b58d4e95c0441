#include <boost/json.hpp>

#include <algorithm>
#include <base/duration.hpp>
#include <base/environment.hpp>
#include <base/exit_code.hpp>
#include <base/json.hpp>
#include <base/say.hpp>
#include <charconv>
#include <cstdio>
#include <hand/tokens.hpp>
#include <iostream>
#include <look/session.hpp>
#include <options/connection.hpp>
#include <subcommands.hpp>

namespace latchkey::tool {
namespace {

constexpr milliseconds shortest_extension{10};

std::string text_of(command_line const& line) {
  if (!line.operands().empty()) {
    auto const& given = line.operands().front();
    if (given != "-") return given;
    std::string read;
    std::getline(std::cin, read);
    return read;
  }
  return variable_of("LATCHKEY_TOKEN").value_or("");
}

std::string all_names(token const& hold) {
  std::string made;
  for (auto const& name : hold.names) (made += made.empty() ? "" : ", ") += quoted(name);
  return made;
}

// A joined lock has one owner for all its members.
std::string token_of_one(token hold, std::string const& name) {
  hold.names = {name};
  return write_token(hold);
}

// What was adopted goes on when it is not asked about any more, also after an error: destroyed, it would be released.
class adopted {
 public:
  explicit adopted(client& from) : from_(from) {}
  adopted(adopted const&) = delete;
  adopted& operator=(adopted const&) = delete;
  ~adopted() {
    try {
      for (auto& one : leases_) static_cast<void>(one.detach());
    } catch (std::exception const&) {
      from_.close();  // something is under way: from now on nothing is released
    }
  }

  // Is everything there still?
  bool take(token const& hold) {
    for (auto const& name : hold.names) leases_.push_back(from_.adopt(token_of_one(hold, name)));
    return std::all_of(leases_.begin(), leases_.end(), [](lease const& one) { return one.held(); });
  }
  // Never shorter than it is: a surrounding run believes what the server has told it.
  bool extend(milliseconds length) {
    return std::all_of(leases_.begin(), leases_.end(),
                       [&](lease& one) { return length <= one.remaining() ? one.held() : one.extend(length); });
  }
  milliseconds remaining() const {
    auto least = milliseconds::max();
    for (auto const& one : leases_) least = std::min(least, one.remaining());
    return least;
  }

 private:
  client& from_;
  std::vector<lease> leases_;
};

// The server has the bytes that the digits stand for.
std::string bytes_of_permit(std::string_view id) {
  std::string made;
  for (; id.size() >= 2; id.remove_prefix(2)) {
    unsigned char byte = 0;
    if (std::from_chars(id.data(), id.data() + 2, byte, 16).ptr != id.data() + 2) break;
    made += static_cast<char>(byte);
  }
  if (!id.empty()) throw failure(wrong_usage, "that is the token of no permit");
  return made;
}

// When the server forgets the permit; nothing: it has.
std::optional<milliseconds> rest_of_permit(session& server, token const& hold) {
  auto const& name = hold.names.front();
  auto const key = name.find('{') == name.npos ? '{' + name + "}:timeout" : name + ":timeout";
  auto const end = server.ask({"ZSCORE", key, bytes_of_permit(hold.owner)});
  auto const now = server.ask({"TIME"});
  if (end.what == answer::type::nothing) return {};
  if (now.list.size() != 2) server.strange();
  auto const now_ms = std::atoll(now.list[0].text.c_str()) * 1'000 + std::atoll(now.list[1].text.c_str()) / 1'000;
  auto const left = std::atoll(end.text.c_str()) - now_ms;
  return left > 0 ? std::optional(milliseconds(left)) : std::nullopt;
}

// Of `held` and `extend`.
int tell(command_line const& line, token const& hold, std::optional<milliseconds> left) {
  if (line.has("json")) {
    boost::json::object made{
        {"schema", 1}, {"name", hold.names.front()}, {"kind", hold.kind}, {"held", left.has_value()}};
    made["remaining_ms"] = left ? boost::json::value(left->count()) : boost::json::value(nullptr);
    std::puts(json_text(made).c_str());
  } else if (left) {
    std::printf("%s is held and ends in %s\n", all_names(hold).c_str(), in_words(*left).c_str());
  } else {
    say(all_names(hold) + " is not held any more");
  }
  return left ? yes : no;
}

connection server_of(command_line const& line) {
  auto server = connection_of(line);
  server.settings.close_timeout = milliseconds(200);  // nothing is waited for but what failed
  return server;
}

}  // namespace

token token_of(command_line const& line) {
  auto const text = text_of(line);
  if (text.empty())
    throw failure(wrong_usage, "a token is missing: give it, or - for standard input, or LATCHKEY_TOKEN");
  auto const made = read_token(text);
  if (!made) throw failure(wrong_usage, "that is no token of latchkey acquire or run");
  return *made;
}

bool release_hold(client const& from, token const& hold) {
  if (hold.kind == "semaphore") return from.get_permit_semaphore(hold.names.front()).try_release(hold.owner);
  bool all = true;
  for (auto const& name : hold.names) {
    auto held = from.adopt(token_of_one(hold, name));
    auto const found = held ? held.release() : release_result::expired;
    if (found == release_result::unknown)
      throw failure(unavailable, quoted(name) + " may still be held: the release was not answered");
    all = all && found != release_result::expired;
  }
  return all;
}

int held(command_line const& line) {
  auto const hold = token_of(line);
  auto server = server_of(line);
  if (hold.kind == "semaphore") {
    session asks(server, hold.names.front());
    return tell(line, hold, rest_of_permit(asks, hold));
  }
  client from(server.uri, std::move(server.settings));
  from.connect();
  adopted taken(from);
  return tell(line, hold, taken.take(hold) ? std::optional(taken.remaining()) : std::nullopt);
}

int extend(command_line const& line) {
  auto const hold = token_of(line);
  auto const length = line.duration("lease", milliseconds(hold.lease_ms), shortest_extension);
  if (length == forever) throw failure(wrong_usage, "--lease has an end");
  if (length < shortest_extension) throw failure(wrong_usage, "--lease is missing: the token does not say one");
  auto server = server_of(line);
  if (hold.kind == "semaphore") {
    session asks(server, hold.names.front());
    auto const left = rest_of_permit(asks, hold);
    if (!left || *left >= length) return tell(line, hold, left);
    client const from(server.uri, std::move(server.settings));
    bool const done = from.get_permit_semaphore(hold.names.front()).update_lease_time(hold.owner, length);
    return tell(line, hold, done ? std::optional(length) : std::nullopt);
  }
  client from(server.uri, std::move(server.settings));
  from.connect();
  adopted taken(from);
  bool const done = taken.take(hold) && taken.extend(length);
  return tell(line, hold, done ? std::optional(taken.remaining()) : std::nullopt);
}

int release(command_line const& line) {
  auto const hold = token_of(line);
  auto server = connection_of(line);
  client const from(server.uri, std::move(server.settings));
  from.connect();
  bool const done = release_hold(from, hold);
  if (line.has("json")) {
    boost::json::object const made{
        {"schema", 1}, {"name", hold.names.front()}, {"kind", hold.kind}, {"released", done}};
    std::puts(json_text(made).c_str());
  } else if (!done) {
    say(all_names(hold) + " was not held any more");
  }
  return done ? yes : no;
}

}  // namespace latchkey::tool
