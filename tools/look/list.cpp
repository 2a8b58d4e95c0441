#include <boost/json.hpp>

#include <algorithm>
#include <base/exit_code.hpp>
#include <base/say.hpp>
#include <cstdio>
#include <limits>
#include <look/look.hpp>
#include <look/session.hpp>
#include <optional>

namespace latchkey::tool {
namespace {

struct holder {
  std::string owner;  // `uuid:number`
  std::string count;
  bool writes = false;
};

struct found_lock {
  std::string name;
  std::string kind;
  std::vector<holder> holders;
  std::int64_t remaining = 0;  // milliseconds; -1: no time to live
};

// The longest hash that is looked at: nobody has more holders, but others have hashes of any size.
constexpr std::int64_t most_fields = 4'096;

bool is_owner(std::string_view field) {
  constexpr std::size_t uuid = 36;
  if (field.size() < uuid + 2 || field[uuid] != ':') return false;
  auto const hexadecimal = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  for (std::size_t i = 0; i < uuid; ++i)
    if (i == 8 || i == 13 || i == 18 || i == 23 ? field[i] != '-' : !hexadecimal(field[i])) return false;
  return field.find_first_not_of("0123456789", uuid + 1) == field.npos;
}

std::optional<found_lock> read_hash(std::string const& name, std::vector<answer> const& fields) {
  found_lock lock{name, "lock", {}, 0};
  bool shown = false;
  for (std::size_t i = 0; i + 1 < fields.size(); i += 2) {
    auto owner = fields[i].text;
    if (owner == "mode") {
      shown = true;
      lock.kind = fields[i + 1].text == "write" ? "write" : "read";
      continue;
    }
    bool const writes = owner.ends_with(":write");
    if (writes) owner.resize(owner.size() - 6);
    if (!is_owner(owner)) continue;
    shown = true;
    lock.holders.push_back({owner, fields[i + 1].text, writes});
  }
  return shown ? std::optional(lock) : std::nullopt;
}

void print(found_lock const& lock, bool as_json) {
  if (as_json) {
    boost::json::array holders;
    for (auto const& one : lock.holders)
      holders.push_back({{"owner", one.owner}, {"count", std::atoi(one.count.c_str())}, {"writes", one.writes}});
    boost::json::object const made{
        {"schema", 1},
        {"name", lock.name},
        {"kind", lock.kind},
        {"holders", holders},
        {"remaining_ms", lock.remaining < 0 ? boost::json::value(nullptr) : boost::json::value(lock.remaining)}};
    std::puts(boost::json::serialize(made).c_str());
    return;
  }
  auto text = quoted(lock.name) + "  " + lock.kind;
  for (auto const& one : lock.holders) {
    text += "  " + one.owner;
    if (one.count != "1") text += " (" + one.count + " times)";
  }
  text += lock.remaining < 0 ? "  no time to live" : "  ends in " + in_words(milliseconds(lock.remaining));
  std::puts(text.c_str());
}

std::vector<found_lock> look_at_hashes(session& server, std::vector<answer> const& keys) {
  std::vector<command> lengths, contents;
  std::vector<std::string> names;
  for (auto const& key : keys) lengths.push_back({"HLEN", key.text});
  auto const sizes = server.ask_all(lengths);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (sizes[i].number < 1 || sizes[i].number > most_fields) continue;
    names.push_back(keys[i].text);
    contents.push_back({"HGETALL", keys[i].text});
    contents.push_back({"PTTL", keys[i].text});
  }
  auto const answers = server.ask_all(contents);
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
    contents.push_back({"GET", key.text});
    contents.push_back({"PTTL", key.text});
  }
  auto const answers = server.ask_all(contents);
  std::vector<found_lock> locks;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    auto const& owner = answers[2 * i];
    if (!is_owner(owner.text) || answers[2 * i + 1].number == -2) continue;
    locks.push_back({keys[i].text, "plain", {{owner.text, "1", false}}, answers[2 * i + 1].number});
  }
  return locks;
}

}  // namespace

int list(command_line const& line) {
  auto const limit = line.number("limit", 1, std::numeric_limits<int>::max()).value_or(std::numeric_limits<int>::max());
  bool const plain = line.choice("kind", "lock") == "plain";
  session server(connection_of(line));
  std::vector<std::string> told;  // SCAN may show a key twice
  std::string cursor = "0";
  do {
    command scan{"SCAN", cursor, "COUNT", "512", "TYPE", plain ? "string" : "hash"};
    if (!line.operands().empty()) scan.insert(scan.end(), {"MATCH", line.operands().front()});
    auto const page = server.ask(scan);
    cursor = page.list.at(0).text;
    auto const& keys = page.list.at(1).list;
    for (auto const& lock : plain ? look_at_strings(server, keys) : look_at_hashes(server, keys)) {
      if (std::find(told.begin(), told.end(), lock.name) != told.end()) continue;
      print(lock, line.has("json"));
      told.push_back(lock.name);
      if (told.size() == static_cast<std::size_t>(limit)) return yes;
    }
  } while (cursor != "0");
  return yes;
}

}  // namespace latchkey::tool
