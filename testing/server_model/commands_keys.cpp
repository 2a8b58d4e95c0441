#include <server_model/commands.hpp>

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

reply rename(surroundings& at, words_view words) {
  keyspace::value* const found = at.data.find(words[1]);
  if (!found) return error("ERR no such key");
  keyspace::value const moved = *found;
  at.data.remove(words[1]);
  at.data.make(words[2], moved.holds).ends = moved.ends;
  return ok();
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

reply publish(surroundings& at, words_view words) { return at.channels.publish(words[1], words[2], false); }

reply spublish(surroundings& at, words_view words) { return at.channels.publish(words[1], words[2], true); }

// --- strings ---

reply get(surroundings& at, words_view words) {
  bool refused = false;
  auto const* const found = look_up<keyspace::text_value>(at, words[1], refused);
  if (refused) return wrong_type();
  return found ? text(*found) : reply{};
}

reply set(surroundings& at, words_view words) {
  bool if_absent = false, if_present = false, keep_time = false;
  std::string const* given = nullptr;
  std::int64_t unit = 0;
  for (std::size_t i = 3; i < words.size(); ++i) {
    std::string const option = lower(words[i]);
    if (option == "nx") {
      if_absent = true;
    } else if (option == "xx") {
      if_present = true;
    } else if (option == "keepttl") {
      keep_time = true;
    } else if ((option == "px" || option == "ex") && i + 1 < words.size() && !given) {
      given = &words[++i];
      unit = option == "px" ? 1 : 1'000;
    } else {
      return syntax_error();
    }
  }
  if ((if_absent && if_present) || (keep_time && given)) return syntax_error();
  std::int64_t length = 0;
  if (given) {
    auto const count = integer_of(*given);
    if (!count) return not_an_integer();
    if (*count <= 0 || __builtin_mul_overflow(*count, unit, &length) || length > INT64_MAX - at.data.now)
      return error("ERR invalid expire time in 'set' command");
  }
  keyspace::value const* const there = at.data.find(words[1]);
  if ((if_absent && there) || (if_present && !there)) return {};
  std::int64_t const kept = there ? there->ends : keyspace::forever;
  auto& made = at.data.make(words[1], words[2]);
  if (length != 0) made.ends = at.data.now + length;
  if (keep_time) made.ends = kept;
  return ok();
}

reply add(surroundings& at, std::string const& key, std::int64_t by) {
  bool refused = false;
  auto* const found = look_up<keyspace::text_value>(at, key, refused);
  if (refused) return wrong_type();
  auto const old = found ? integer_of(*found) : 0;
  if (!old) return not_an_integer();
  std::int64_t sum = 0;
  if (__builtin_add_overflow(*old, by, &sum)) return error("ERR increment or decrement would overflow");
  if (found)
    *found = std::to_string(sum);
  else
    at.data.make(key, std::to_string(sum));
  return number(sum);
}

reply add_given(surroundings& at, words_view words, bool negative) {
  auto const by = integer_of(words[2]);
  if (!by) return not_an_integer();
  if (negative && *by == INT64_MIN) return error("ERR decrement would overflow");
  return add(at, words[1], negative ? -*by : *by);
}

constexpr command key_table[] = {
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
    {"rename", 3, command::writes, rename},
    {"persist", 2, command::writes, persist},
    {"time", 1, command::reads, time},
    {"publish", 3, command::reads, publish},
    {"spublish", 3, command::reads, spublish},
    {"get", 2, command::reads, get},
    {"set", -3, command::grows, set},
    {"incr", 2, command::grows, [](surroundings& at, words_view words) { return add(at, words[1], 1); }},
    {"decr", 2, command::grows, [](surroundings& at, words_view words) { return add(at, words[1], -1); }},
    {"incrby", 3, command::grows, [](surroundings& at, words_view words) { return add_given(at, words, false); }},
    {"decrby", 3, command::grows, [](surroundings& at, words_view words) { return add_given(at, words, true); }},
};

}  // namespace

commands_view key_commands() { return key_table; }

}  // namespace latchkey::model
