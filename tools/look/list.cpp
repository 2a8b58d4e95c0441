#include <base/exit_code.hpp>
#include <cstdio>
#include <limits>
#include <look/locks.hpp>
#include <look/session.hpp>
#include <look/topology.hpp>
#include <subcommands.hpp>
#include <unordered_set>

namespace latchkey::tool {
namespace {

// The longest hash that is looked at: nobody has more holders, but others have hashes of any size.
constexpr std::int64_t most_fields = 4'096;

// Keys of others may be refused, and are then left out; a command that may not run says nothing of any key.
std::vector<answer> ask_each(session& server, std::vector<command> const& all) {
  auto made = server.ask_all(all);
  for (auto const& one : made)
    if (one.what == answer::type::error && one.text.find(" to run ") != one.text.npos) server.refuse(one.text);
  return made;
}

std::vector<found_lock> look_at_hashes(session& server, std::vector<answer> const& keys) {
  std::vector<command> lengths, contents;
  std::vector<std::string> names;
  for (auto const& key : keys) lengths.push_back({"HLEN", key.text});
  auto const sizes = ask_each(server, lengths);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (sizes[i].number < 1 || sizes[i].number > most_fields) continue;
    names.push_back(keys[i].text);
    contents.push_back({"HGETALL", keys[i].text});
    contents.push_back({"PTTL", keys[i].text});
  }
  auto const answers = ask_each(server, contents);
  std::vector<found_lock> locks;
  for (std::size_t i = 0; i < names.size(); ++i) {
    auto lock = read_hash(names[i], answers[2 * i].list);
    if (!lock || answers[2 * i + 1].number == -2) continue;  // it has ended meanwhile
    lock->remaining = answers[2 * i + 1].number;
    locks.push_back(*std::move(lock));
  }
  return locks;
}

std::vector<found_lock> look_at_strings(session& server, std::vector<answer> const& keys) {
  std::vector<command> contents;
  for (auto const& key : keys) {
    contents.push_back(beginning_of(key.text));
    contents.push_back({"PTTL", key.text});
  }
  auto const answers = ask_each(server, contents);
  std::vector<found_lock> locks;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    auto const& owner = answers[2 * i];
    if (!is_owner(owner.text) || answers[2 * i + 1].number == -2) continue;
    locks.push_back({keys[i].text, "plain", {{owner.text, "1", false}}, answers[2 * i + 1].number});
  }
  return locks;
}

// How many it has told of, at most `limit`.
int list(command_line const& line, session& server, int limit) {
  bool const plain = line.choice("kind", "lock") == "plain";
  std::unordered_set<std::string> told;  // SCAN may show a key twice
  std::string cursor = "0";
  do {
    command scan{"SCAN", cursor, "COUNT", "512", "TYPE", plain ? "string" : "hash"};
    if (!line.operands().empty()) scan.insert(scan.end(), {"MATCH", line.operands().front()});
    auto const page = server.ask(scan);
    if (page.list.size() != 2 || page.list[0].text.empty()) server.strange();
    // One that does not move on would be asked for ever.
    if (cursor != "0" && page.list[0].text == cursor) server.strange();
    cursor = page.list[0].text;
    auto const& keys = page.list[1].list;
    for (auto const& lock : plain ? look_at_strings(server, keys) : look_at_hashes(server, keys)) {
      if (!told.insert(lock.name).second) continue;
      std::puts((line.has("json") ? as_json(lock) : as_text(lock)).c_str());
      if (told.size() == static_cast<std::size_t>(limit)) return limit;
    }
  } while (cursor != "0");
  return static_cast<int>(told.size());
}

}  // namespace

int list(command_line const& line) {
  auto const to = connection_of(line);
  int left = line.number("limit", 1, std::numeric_limits<int>::max()).value_or(std::numeric_limits<int>::max());
  for (auto const& one : servers_of(to)) {
    session server(to, one.at);
    server.tell_of_replica();
    left -= with_rights("+scan +hlen +hgetall +getrange +pttl", [&] { return list(line, server, left); });
    if (left == 0) break;
  }
  return yes;
}

}  // namespace latchkey::tool
