#include <doctor/rights.hpp>
#include <look/session.hpp>
#include <sstream>

namespace latchkey::tool {
namespace {

constexpr std::string_view of_hash = "exists hset hget hincrby hexists hdel hlen del pexpire pttl publish";
constexpr std::string_view lock_channel = "redisson_lock__channel:{NAME}";
constexpr std::string_view of_read_write =
    "exists hset hget hincrby hexists hdel hlen hgetall set del pexpire pttl publish";
constexpr std::string_view read_write_keys = "NAME {NAME}:*";

constexpr kind_rights rights[] = {
    {"lock", of_hash, "NAME", lock_channel},
    {"non-reentrant", of_hash, "NAME", lock_channel},
    {"spin", "exists hset hget hincrby hexists hdel hlen del pexpire pttl", "NAME", ""},
    {"fenced", "exists hset hget hincrby hexists hdel hlen del pexpire pttl publish incrby get time",
     "NAME redisson_lock_token:{NAME}", lock_channel},
    {"plain", "exists get set del pexpire pttl publish", "NAME", "latchkey_plain__channel:{NAME}"},
    {"fair",
     "exists hset hget hincrby hexists hdel hlen del pexpire pttl publish time lindex lpos lrange lpop lrem rpush zadd "
     "zscore zrem zrange zremrangebyrank llen zcard zrank",
     "NAME redisson_lock_queue:{NAME} redisson_lock_timeout:{NAME}", "redisson_lock__channel:{NAME}*"},
    {"read", of_read_write, read_write_keys, "redisson_rwlock:{NAME}"},
    {"write", of_read_write, read_write_keys, "redisson_rwlock:{NAME}"},
    {"semaphore",
     "get set incrby decrby del persist pexpire pttl publish time zadd zrem zscore zcount zrange zremrangebyscore",
     "NAME {NAME}:timeout latchkey_request:{NAME}:*", "redisson_sc:{NAME}"},
};

}  // namespace

std::span<kind_rights const> all_rights() { return rights; }

kind_rights const& rights_of(std::string_view kind) {
  for (auto const& one : rights)
    if (one.kind == kind) return one;
  return rights[0];
}

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  std::istringstream all{std::string(text)};
  for (std::string one; all >> one;) words.push_back(one);
  return words;
}

std::string filled_in(std::string word, std::string const& name) {
  if (auto const at = word.find("NAME"); at != word.npos) word.replace(at, 4, name);
  return word;
}

std::string channel_of(kind_rights const& of, std::string const& name) {
  auto made = filled_in(std::string(of.channels), name);
  if (made.ends_with('*')) made.pop_back();
  return made;
}

bool is_of_messages(std::string_view word) { return word == "publish" || word == "subscribe" || word == "unsubscribe"; }

std::string as_sharded(std::string_view word, bool sharded) {
  return std::string(sharded && is_of_messages(word) ? "s" : "").append(word);
}

std::string acl_words(session& server, std::string_view kind, std::string const& name) {
  auto const& of = rights_of(kind);
  bool const sharded = server.has_sharded_channels();
  std::string made;
  auto const add = [&](char sign, std::string_view text) {
    for (auto const& word : words_of(text))
      (made += made.empty() ? "" : " ") += sign + filled_in(as_sharded(word, sharded), name);
  };
  add('+', rights_to_run_scripts);
  add('+', of.commands);
  if (server.in_cluster()) add('+', rights_in_a_cluster);
  if (sharded && !of.channels.empty()) add('+', "subscribe unsubscribe");
  add('~', of.keys);
  add('&', of.channels);
  return made;
}

}  // namespace latchkey::tool
