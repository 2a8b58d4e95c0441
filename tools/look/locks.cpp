#include <boost/json.hpp>

#include <base/duration.hpp>
#include <base/json.hpp>
#include <base/say.hpp>
#include <look/locks.hpp>

namespace latchkey::tool {
namespace {

constexpr std::int64_t most_shown = 64;

}  // namespace

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
  bool has_others = false;
  for (std::size_t i = 0; i + 1 < fields.size(); i += 2) {
    auto owner = fields[i].text;
    auto const& value = fields[i + 1].text;
    if (owner == "mode" && (value == "read" || value == "write")) {
      lock.kind = value;
      continue;
    }
    bool const writes = owner.ends_with(":write");
    if (writes) owner.resize(owner.size() - 6);
    if (is_owner(owner))
      lock.holders.push_back({owner, value, writes});
    else
      has_others = true;
  }
  // A read/write lock without holders has its mode alone: a hash of something else may have such a field, too.
  bool const left_over = lock.kind != "lock" && !has_others;
  return left_over || !lock.holders.empty() ? std::optional(lock) : std::nullopt;
}

command beginning_of(std::string const& name) { return {"GETRANGE", name, "0", std::to_string(most_shown - 1)}; }

found_lock look_at(session& server, std::string const& name) {
  // Of one type each; the other is refused.
  auto const seen = server.ask_all({{"HGETALL", name}, beginning_of(name), {"STRLEN", name}, {"PTTL", name}});
  for (auto const& one : seen)
    if (one.what == answer::type::error && !one.text.starts_with("WRONGTYPE")) server.refuse(one.text);
  if (seen[3].what != answer::type::number) server.strange();
  found_lock lock{name, {}, {}, -1};
  auto const remaining = seen[3].number;
  if (remaining == -2) return lock;
  if (auto const hash = read_hash(name, seen[0].list)) {
    lock = *hash;
  } else {
    auto text = seen[1].what == answer::type::text ? seen[1].text : std::string();
    // Other libraries put a token of their own there, which is no number of permits.
    bool const no_number = text.size() > 20 || text.find_first_not_of("-0123456789") != text.npos;
    if (is_owner(text) || (remaining >= 0 && no_number)) {
      if (seen[2].number > most_shown) text += "... (" + std::to_string(seen[2].number) + " bytes)";
      lock.kind = "plain";
      lock.holders = {{text, "1", false}};
    } else if (remaining >= 0 && !text.empty()) {
      lock.kind = plain_or_semaphore;
      lock.permits = std::atoll(text.c_str());
    } else {
      return lock;
    }
  }
  lock.remaining = remaining;
  return lock;
}

std::string as_text(found_lock const& lock) {
  auto text = quoted(lock.name);
  if (lock.kind.empty()) return text + "  free";
  text += "  " + lock.kind;
  for (auto const& one : lock.holders) {
    text += "  " + quoted(one.owner);
    if (one.count != "1") text += " (" + one.count + " times)";
  }
  return text + (lock.remaining < 0 ? "  no time to live" : "  ends in " + in_words(milliseconds(lock.remaining)));
}

std::string as_json(found_lock const& lock) {
  boost::json::array holders;
  for (auto const& one : lock.holders)
    holders.push_back({{"owner", one.owner}, {"count", std::atoll(one.count.c_str())}, {"writes", one.writes}});
  boost::json::object made{{"schema", 1}, {"name", lock.name}, {"held", lock.held()}};
  made["kind"] = lock.kind.empty() ? boost::json::value(nullptr) : boost::json::value(lock.kind);
  made["holders"] = std::move(holders);
  if (lock.permits) made["permits"] = *lock.permits;
  made["remaining_ms"] = lock.remaining < 0 ? boost::json::value(nullptr) : boost::json::value(lock.remaining);
  return json_text(made);
}

}  // namespace latchkey::tool
