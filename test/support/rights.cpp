#include <support/rights.hpp>

#include <sstream>
#include <stdexcept>

namespace latchkey::test {

namespace {

// test/docs/rights.py reads these lines.
// [rights]
constexpr kind_rights rights[] = {
    {"every client", "", "",
     "evalsha eval ping role info client|setname client|info client|kill client|list script|exists subscribe "
     "unsubscribe"},
    {"get_lock", "NAME", "redisson_lock__channel:{NAME}",
     "exists hset hget hincrby hexists hdel hlen del pexpire pttl publish"},
    {"get_non_reentrant_lock", "NAME", "redisson_lock__channel:{NAME}",
     "exists hset hget hincrby hexists hdel hlen del pexpire pttl publish"},
    {"get_spin_lock", "NAME", "", "exists hset hget hincrby hexists hdel hlen del pexpire pttl"},
    {"get_fenced_lock", "NAME redisson_lock_token:{NAME}", "redisson_lock__channel:{NAME}",
     "exists hset hget hincrby hexists hdel hlen del pexpire pttl publish incrby get time"},
    {"get_plain_lock", "NAME", "latchkey_plain__channel:{NAME}", "exists get set del pexpire pttl publish"},
    {"get_fair_lock", "NAME redisson_lock_queue:{NAME} redisson_lock_timeout:{NAME}", "redisson_lock__channel:{NAME}*",
     "exists hset hget hincrby hexists hdel hlen del pexpire pttl publish time lindex lpos lrange lpop lrem rpush zadd "
     "zscore zrem zrange zremrangebyrank llen zcard zrank"},
    {"get_read_write_lock", "NAME {NAME}:*", "redisson_rwlock:{NAME}",
     "exists hset hget hincrby hexists hdel hlen hgetall set del pexpire pttl publish"},
    {"get_semaphore", "NAME latchkey_request:{NAME}:* latchkey_semaphore_claim:{NAME}", "redisson_sc:{NAME}",
     "exists get set incrby decrby del persist publish"},
    {"get_permit_semaphore", "NAME {NAME}:timeout latchkey_request:{NAME}:*", "redisson_sc:{NAME}",
     "get set incrby decrby del persist pexpire pttl publish time zadd zrem zscore zcount zrange "
     "zremrangebyscore"},
    {"get_count_down_latch", "NAME latchkey_request:{NAME}:*", "redisson_countdownlatch__channel__{NAME}",
     "exists get set decr del publish"},
};
// [/rights]

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> words;
  std::istringstream all{std::string(text)};
  for (std::string one; all >> one;) words.push_back(one);
  return words;
}

std::string with_name(std::string text, std::string const& name) {
  for (std::size_t at = 0; (at = text.find("NAME", at)) != text.npos; at += name.size()) text.replace(at, 4, name);
  return text;
}

}  // namespace

std::vector<kind_rights> const& all_rights() {
  static std::vector<kind_rights> const all(std::begin(rights), std::end(rights));
  return all;
}

std::vector<std::string> rights_of(std::string_view kind, std::string const& names) {
  std::vector<std::string> all;
  bool known = false;
  for (auto const& row : all_rights()) {
    if (row.kind != kind && &row != &all_rights().front()) continue;
    known = known || row.kind == kind;
    for (auto const& one : split(row.keys)) all.push_back("~" + with_name(one, names));
    for (auto const& one : split(row.channels)) all.push_back("&" + with_name(one, names));
    for (auto const& one : split(row.commands)) all.push_back("+" + one);
  }
  if (!known) throw std::logic_error("no rights of " + std::string(kind));
  return all;
}

}  // namespace latchkey::test
