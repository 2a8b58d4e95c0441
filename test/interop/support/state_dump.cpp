#include <interop/support/state_dump.hpp>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <optional>
#include <stdexcept>

namespace latchkey::test {

namespace {

// All keys at once, so that nothing changes in between; {now, {key, type, time to live, content}...}.
constexpr std::string_view dump_script = R"lua(
local time = redis.call('time')
local result = {time[1] * 1000 + math.floor(time[2] / 1000)}
for _, key in ipairs(redis.call('keys', '*')) do
  local type = redis.call('type', key).ok
  local content = {}
  if type == 'string' then content = {redis.call('get', key)}
  elseif type == 'hash' then content = redis.call('hgetall', key)
  elseif type == 'list' then content = redis.call('lrange', key, 0, -1)
  elseif type == 'zset' then content = redis.call('zrange', key, 0, -1, 'withscores')
  elseif type == 'set' then content = redis.call('smembers', key) end
  table.insert(result, {key, type, redis.call('pttl', key), content})
end
return result)lua";

// Milliseconds by which times may differ.
constexpr long long tolerance = 50;

// Scores beyond this are milliseconds since 1970, if they are not Redisson's word for "never".
constexpr double first_instant = 1e12;
constexpr std::string_view never = "922337203685477";

void add_scores(state_dump::key_state& state, std::vector<std::string> const& words) {
  for (std::size_t i = 0; i + 1 < words.size(); i += 2) {
    auto const& score = words[i + 1];
    bool const instant = score != never && std::stod(score) > first_instant;
    state.content.push_back(instant ? words[i] : words[i] + "=" + score);
    if (instant) state.instants[words[i]] = static_cast<long long>(std::stod(score));
  }
}

void add_fields(state_dump::key_state& state, std::vector<std::string> const& words) {
  for (std::size_t i = 0; i + 1 < words.size(); i += 2) state.content.push_back(words[i] + "=" + words[i + 1]);
  std::sort(state.content.begin(), state.content.end());
}

// Between which distances from its writing an instant was set; one that did not change tells nothing new.
struct distance {
  bool changed;
  long long least;
  long long most;
};

distance distance_of(moment const& at, std::string const& key, std::string const& of) {
  auto const instant = at.after().keys.at(key).instants.at(of);
  auto const old = at.before().keys.find(key);
  // The server reads its clock for each command, so that the same instant looks different by a millisecond or two.
  bool const same = old != at.before().keys.end() && old->second.instants.contains(of) &&
                    std::abs(old->second.instants.at(of) - instant) <= 2;
  return {!same, instant - at.after().taken_ms, instant - at.before().taken_ms};
}

// A score may count from the end of a lease instead: of the one that was there when its waiter came, or, latchkey's,
// when it looked again.
bool count_from_a_lease(moment const& one, moment const& other, std::string const& key, std::string const& of) {
  auto const distance = [&](moment const& seen, std::size_t step, std::string const& lock) -> std::optional<long long> {
    auto const found = seen.states[step]->keys.find(lock);
    if (found == seen.states[step]->keys.end() || !found->second.instants.contains("")) return std::nullopt;
    return seen.after().keys.at(key).instants.at(of) - found->second.instants.at("");
  };
  for (std::size_t mine = 0; mine < one.states.size(); ++mine) {
    for (auto const& [lock, state] : one.states[mine]->keys) {
      auto const a = distance(one, mine, lock);
      for (std::size_t theirs = 0; a && theirs <= mine; ++theirs) {
        auto const b = distance(other, theirs, lock);
        if (b && std::llabs(*a - *b) <= tolerance) return true;
      }
    }
  }
  return false;
}

std::string words_of(state_dump::key_state const& state) {
  std::string result = state.type;
  for (auto const& one : state.content) result += " " + one;
  return result;
}

}  // namespace

std::string with_symbols(std::string text, symbols const& table) {
  for (auto const& [from, to] : table) {
    for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos;) {
      auto const end = at + from.size();
      // The owner 3 is not the beginning of the owner 36.
      bool const whole = end == text.size() || std::isdigit(static_cast<unsigned char>(text[end])) == 0 ||
                         std::isdigit(static_cast<unsigned char>(from.back())) == 0;
      if (whole) text.replace(at, from.size(), to);
      at += whole ? to.size() : 1;
    }
  }
  return text;
}

state_dump dump(raw_redis& server, symbols const& table) {
  auto const answer = server.ok("EVAL", dump_script, 0);
  state_dump result;
  result.taken_ms = answer.elements.at(0).integer;
  for (std::size_t i = 1; i < answer.elements.size(); ++i) {
    auto const& one = answer.elements[i].elements;
    auto const key = with_symbols(one.at(0).text, table);
    if (key.starts_with(unlock_latch) || key.starts_with(own_keys)) continue;
    auto& state = result.keys[key];
    state.type = one.at(1).text;
    std::vector<std::string> words;
    for (auto const& word : one.at(3).elements) words.push_back(with_symbols(word.text, table));
    if (state.type == "zset") {
      add_scores(state, words);
    } else if (state.type == "hash") {
      add_fields(state, words);
    } else {
      state.content = std::move(words);
    }
    if (one.at(2).integer >= 0) state.instants[""] = result.taken_ms + one.at(2).integer;
  }
  return result;
}

std::string difference(moment const& one, moment const& other, bool longer_is_fine) {
  for (auto const& [key, state] : one.after().keys) {
    if (!other.after().keys.contains(key)) return key + " is there: " + words_of(state);
  }
  for (auto const& [key, state] : other.after().keys) {
    if (!one.after().keys.contains(key)) return key + " is not there: " + words_of(state);
    auto const& mine = one.after().keys.at(key);
    if (mine.type != state.type || mine.content != state.content) {
      return key + " is " + words_of(mine) + " and not " + words_of(state);
    }
    if (mine.instants.size() != state.instants.size()) return key + ": one has a time to live, the other has not";
    for (auto const& [of, instant] : state.instants) {
      if (!mine.instants.contains(of)) return key + ": there is no time of " + of;
      auto const a = distance_of(one, key, of);
      auto const b = distance_of(other, key, of);
      if (!a.changed && !b.changed) continue;
      auto const apart = longer_is_fine ? b.least - a.most : std::max(a.least - b.most, b.least - a.most);
      if (apart > tolerance && (of.empty() || !count_from_a_lease(one, other, key, of))) {
        return key + " " + of + ": " + std::to_string(a.least) + ".." + std::to_string(a.most) + " ms, and not " +
               std::to_string(b.least) + ".." + std::to_string(b.most) + " ms";
      }
    }
  }
  return {};
}

std::string to_text(state_dump const& state) {
  std::string result;
  for (auto const& [key, one] : state.keys) {
    result += "  " + key + " = " + words_of(one);
    for (auto const& [of, instant] : one.instants) {
      result += " ; " + (of.empty() ? "ends" : of) + " in " + std::to_string(instant - state.taken_ms);
    }
    result += "\n";
  }
  return result;
}

}  // namespace latchkey::test
