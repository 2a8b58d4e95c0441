#include <support/server_model/commands.hpp>

namespace latchkey::model {

namespace {

reply exists(surroundings& at, words_view words) {
  std::int64_t found = 0;
  for (auto const& key : words.subspan(1)) found += at.data.find(key) != nullptr;
  return number(found);
}

reply del(surroundings& at, words_view words) {
  std::int64_t gone = 0;
  for (auto const& key : words.subspan(1)) gone += at.data.remove(key);
  return number(gone);
}

reply type(surroundings& at, words_view words) {
  keyspace::value const* const found = at.data.find(words[1]);
  static constexpr char const* names[] = {"string", "hash", "list", "zset"};
  return status(found ? names[found->holds.index()] : "none");
}

reply time_left(surroundings& at, words_view words, std::int64_t unit) {
  keyspace::value const* const found = at.data.find(words[1]);
  if (!found) return number(-2);
  if (found->ends == keyspace::forever) return number(-1);
  std::int64_t const left = std::max<std::int64_t>(found->ends - at.data.now, 0);
  return number(unit == 1 ? left : (left + unit / 2) / unit);
}

// `start`: 0 for a point in time, now for a length.
reply end_at(surroundings& at, words_view words, std::int64_t unit, std::int64_t start) {
  auto const length = integer_of(words[2]);
  if (!length) return not_an_integer();
  std::int64_t end = 0;
  if (__builtin_mul_overflow(*length, unit, &end) || __builtin_add_overflow(end, start, &end))
    return error("ERR invalid expire time in '" + lower(words[0]) + "' command");
  keyspace::value* const found = at.data.find(words[1]);
  if (!found) return number(0);
  if (end <= at.data.now)
    at.data.remove(words[1]);
  else
    found->ends = end;
  return number(1);
}

reply persist(surroundings& at, words_view words) {
  keyspace::value* const found = at.data.find(words[1]);
  if (!found || found->ends == keyspace::forever) return number(0);
  found->ends = keyspace::forever;
  return number(1);
}

reply time(surroundings& at, words_view) {
  return array(
      {text(std::to_string(at.data.microseconds / 1'000'000)), text(std::to_string(at.data.microseconds % 1'000'000))});
}

reply publish(surroundings& at, words_view words) { return at.channels.publish(words[1], words[2]); }

constexpr command table[] = {
    {"exists", -2, command::reads, exists},
    {"del", -2, command::writes, del},
    {"unlink", -2, command::writes, del},
    {"type", 2, command::reads, type},
    {"pttl", 2, command::reads, [](surroundings& at, words_view words) { return time_left(at, words, 1); }},
    {"ttl", 2, command::reads, [](surroundings& at, words_view words) { return time_left(at, words, 1'000); }},
    {"pexpire", 3, command::writes,
     [](surroundings& at, words_view words) { return end_at(at, words, 1, at.data.now); }},
    {"expire", 3, command::writes,
     [](surroundings& at, words_view words) { return end_at(at, words, 1'000, at.data.now); }},
    {"pexpireat", 3, command::writes, [](surroundings& at, words_view words) { return end_at(at, words, 1, 0); }},
    {"persist", 2, command::writes, persist},
    {"time", 1, command::reads, time},
    {"publish", 3, command::reads, publish},
};

}  // namespace

commands_view key_commands() { return table; }

}  // namespace latchkey::model
