#include <server_model/commands.hpp>

#include <algorithm>

namespace latchkey::model {

namespace {

using hash = keyspace::hash_value;

hash::iterator field_of(hash& one, std::string const& field) {
  return std::find_if(one.begin(), one.end(), [&](auto const& pair) { return pair.first == field; });
}

// For commands that only read: `answer` gets the hash, null if there is none.
template <class Answer>
reply with_hash(surroundings& at, words_view words, Answer answer) {
  bool refused = false;
  hash* const found = look_up<hash>(at, words[1], refused);
  return refused ? wrong_type() : answer(found);
}

reply hget(surroundings& at, words_view words) {
  return with_hash(at, words, [&](hash* found) {
    if (!found) return reply{};
    auto const field = field_of(*found, words[2]);
    return field == found->end() ? reply{} : text(field->second);
  });
}

reply hexists(surroundings& at, words_view words) {
  return with_hash(at, words, [&](hash* found) { return number(found && field_of(*found, words[2]) != found->end()); });
}

reply hlen(surroundings& at, words_view words) {
  return with_hash(at, words, [](hash* found) { return number(found ? static_cast<std::int64_t>(found->size()) : 0); });
}

reply listed(surroundings& at, words_view words, bool names, bool values) {
  return with_hash(at, words, [&](hash* found) {
    reply made = array();
    if (!found) return made;
    for (auto const& [field, value] : *found) {
      if (names) made.elements.push_back(text(field));
      if (values) made.elements.push_back(text(value));
    }
    return made;
  });
}

hash& made_if_absent(surroundings& at, std::string const& key, hash* found) {
  return found ? *found : std::get<hash>(at.data.make(key, hash{}).holds);
}

bool put(hash& one, std::string const& field, std::string const& value) {
  auto const there = field_of(one, field);
  bool const fresh = there == one.end();
  if (fresh)
    one.emplace_back(field, value);
  else
    there->second = value;
  return fresh;
}

reply hset(surroundings& at, words_view words) {
  if (words.size() % 2 != 0) return error("ERR wrong number of arguments for '" + lower(words[0]) + "' command");
  return with_hash(at, words, [&](hash* found) {
    hash& one = made_if_absent(at, words[1], found);
    std::int64_t fresh = 0;
    for (std::size_t i = 2; i < words.size(); i += 2) fresh += put(one, words[i], words[i + 1]);
    return number(fresh);
  });
}

reply hsetnx(surroundings& at, words_view words) {
  return with_hash(at, words, [&](hash* found) {
    if (found && field_of(*found, words[2]) != found->end()) return number(0);
    put(made_if_absent(at, words[1], found), words[2], words[3]);
    return number(1);
  });
}

reply hincrby(surroundings& at, words_view words) {
  auto const by = integer_of(words[3]);
  if (!by) return not_an_integer();
  return with_hash(at, words, [&](hash* found) {
    std::optional<std::int64_t> old = 0;
    if (found)
      if (auto const there = field_of(*found, words[2]); there != found->end()) old = integer_of(there->second);
    if (!old) return error("ERR hash value is not an integer");
    std::int64_t sum = 0;
    if (__builtin_add_overflow(*old, *by, &sum)) return error("ERR increment or decrement would overflow");
    put(made_if_absent(at, words[1], found), words[2], std::to_string(sum));
    return number(sum);
  });
}

reply hdel(surroundings& at, words_view words) {
  return with_hash(at, words, [&](hash* found) {
    std::int64_t gone = 0;
    if (!found) return number(0);
    for (auto const& field : words.subspan(2)) {
      auto const there = field_of(*found, field);
      if (there == found->end()) continue;
      found->erase(there);
      ++gone;
    }
    if (found->empty()) at.data.remove(words[1]);
    return number(gone);
  });
}

constexpr command hash_table[] = {
    {"hget", 3, command::reads, hget},
    {"hexists", 3, command::reads, hexists},
    {"hlen", 2, command::reads, hlen},
    {"hkeys", 2, command::reads, [](surroundings& at, words_view words) { return listed(at, words, true, false); }},
    {"hvals", 2, command::reads, [](surroundings& at, words_view words) { return listed(at, words, false, true); }},
    {"hgetall", 2, command::reads, [](surroundings& at, words_view words) { return listed(at, words, true, true); }},
    {"hset", -4, command::grows, hset},
    {"hsetnx", 4, command::grows, hsetnx},
    {"hincrby", 4, command::grows, hincrby},
    {"hdel", -3, command::writes, hdel},
};

}  // namespace

commands_view hash_commands() { return hash_table; }

}  // namespace latchkey::model
