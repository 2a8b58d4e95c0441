#include <wire/cluster.hpp>
#include <wire/kind.hpp>
#include <wire/number.hpp>

#include <charconv>
#include <limits>
#include <stdexcept>

namespace latchkey::detail {

namespace {

void append_prefixed(std::string& key, std::string_view prefix, std::string_view name) {
  bool const has_tag = name.find('{') != name.npos;
  key.reserve(prefix.size() + name.size() + 3);
  key.append(prefix).append(has_tag ? ":" : ":{").append(name);
  if (!has_tag) key += '}';
}

}  // namespace

std::string prefixed(std::string_view prefix, std::string_view name) {
  std::string key;
  append_prefixed(key, prefix, name);
  return key;
}

void add_prefixed(words& command, std::string_view prefix, std::string_view name) {
  append_prefixed(command.add_empty(), prefix, name);
}

std::string suffixed(std::string_view name, std::string_view suffix) {
  bool const has_tag = name.find('{') != name.npos;
  std::string key;
  key.reserve(suffix.size() + name.size() + 3);
  key.append(has_tag ? "" : "{").append(name).append(has_tag ? ":" : "}:").append(suffix);
  return key;
}

namespace {

// Both in one moment: a time to live alone may be that of another holder.
constexpr std::string_view hash_rest = R"lua(local own = redis.pcall('hexists', KEYS[1], ARGV[1])
if own == 0 then return -2 end
return own == 1 and redis.pcall('pttl', KEYS[1]) or own)lua";

}  // namespace

void kind::add_script(std::string_view text, item const& item, words& command) {
  command.add_all("EVAL", text, std::int64_t{1}, item.name, item.field);
}

void kind::add_field(std::string& out, std::string_view client_id, std::uint64_t owner, unsigned char) const {
  char digits[std::numeric_limits<std::uint64_t>::digits10 + 1];
  auto const end = std::to_chars(digits, digits + sizeof digits, owner).ptr;
  out.reserve(out.size() + client_id.size() + 1 + sizeof digits);
  out.append(client_id).append(":").append(digits, end);
}

// All keys are made by one rule, and so is the channel of most kinds.
bool kind::in_one_slot(std::string_view name) const {
  auto const part = hashed_part(name);
  return hashed_part(channel(name, {})) == part && hashed_part(prefixed({}, name)) == part;
}

void kind::add_query(query what, item const& item, words& command) const {
  switch (what) {
    case query::is_locked: return command.add_all("EXISTS", item.name);
    case query::is_held_by: return command.add_all("HEXISTS", item.name, item.field);
    case query::hold_count: return command.add_all("HGET", item.name, item.field);
    case query::time_to_live: return command.add_all("PTTL", item.name);
    case query::rest: return add_script(hash_rest, item, command);
    case query::value: return command.add_all("GET", item.name);
    case query::holders: return command.add_all("HGETALL", item.name);
    case query::line:
      command.add("LRANGE");
      add_prefixed(command, "redisson_lock_queue", item.name);
      return command.add_all(std::int64_t{0}, std::int64_t{-1});
    case query::listeners: return command.add_all("PUBSUB", "NUMSUB", channel(item.name, {}));
    case query::clients: return command.add_all("INFO", "clients");
    case query::connections: return command.add_all("CLIENT", "LIST");
    case query::token: break;
  }
  throw std::logic_error("this kind does not understand the question");
}

bool kind::read_query(query what, reply const& answer, std::int64_t& value) const {
  if (what == query::hold_count || what == query::value) {
    if (answer.kind == reply::type::nil) {
      value = 0;
      return true;
    }
    if (answer.kind != reply::type::string || !read_number(answer.text, value)) return false;
    return what == query::value || value >= 0;
  }
  if (!answer.is_integer()) return false;
  value = answer.integer;
  if (what == query::time_to_live || what == query::rest) return value >= -2;
  return value == 0 || value == 1;
}

namespace {

script const& one_of(std::array<lazy_script const*, 7> const& scripts, std::size_t which) {
  if (which >= scripts.size() || !scripts[which]) throw std::logic_error("this kind has no such request");
  return (*scripts[which])();
}

}  // namespace

script const& kind::script_for(ask what) const {
  return one_of(traits_.scripts, static_cast<std::size_t>(what) - static_cast<std::size_t>(ask::acquire));
}

script const& kind::command_script(unsigned char command) const { return one_of(traits_.commands, command); }

kind::command_rules kind::rules_of(unsigned char) const { return {}; }

std::uint64_t kind::concerns(unsigned char, std::string_view, std::string_view) const { return 0; }

}  // namespace latchkey::detail
