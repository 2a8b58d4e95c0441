#include <interop/support/history.hpp>

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

namespace {

// An id of a permit is told as 32 hexadecimal digits and stands on the server as 16 bytes.
bool is_permit_id(std::string const& text) {
  return text.size() == 32 && std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isxdigit(c); });
}

std::string bytes_of(std::string const& digits) {
  std::string result;
  for (std::size_t i = 0; i < digits.size(); i += 2) {
    result += static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16));
  }
  return result;
}

}  // namespace

stage::stage(peer& a, peer& b, std::vector<redis_server*> servers)
    : actors_{{"a", &a}, {"b", &b}}, servers_(std::move(servers)) {
  learn(a, "A");
  learn(b, "B");
}

void stage::learn(peer& who, std::string const& letter) {
  // With more digits first.
  std::vector<std::pair<std::string, std::string>> numbers;
  for (std::string const worker : {"", "2", "3"}) {
    numbers.emplace_back(who.call("h" + worker, "owner", "lock", "any").value, letter + worker);
  }
  std::sort(numbers.begin(), numbers.end(),
            [](auto const& one, auto const& other) { return one.first.size() > other.first.size(); });
  for (auto const& id : who.ids()) {
    for (auto const& [number, name] : numbers) table_.emplace_back(id + ":" + number, name);
  }
  for (auto const& id : who.ids()) table_.emplace_back(id, letter + "-id");
}

std::vector<state_dump> stage::look() {
  std::vector<state_dump> result;
  for (auto* server : servers_) {
    auto admin = server->admin();
    result.push_back(dump(admin, table_));
  }
  return result;
}

std::vector<after_step> stage::play(history const& what, std::function<void(std::size_t)> const& watch) {
  for (auto* server : servers_) server->admin().ok("FLUSHALL");
  std::vector<after_step> result{{look(), {}}};
  for (std::size_t i = 0; i < what.steps.size(); ++i) {
    after_step after;
    after.answered = make(what, what.steps[i]);
    after.states = look();
    result.push_back(std::move(after));
    if (watch) watch(i);
  }
  return result;
}

std::string stage::make(history const& what, std::string const& step) {
  std::string answers;
  for (auto const& part : parts_of(step, ';')) {
    answers += (answers.empty() ? "" : ";") + make_part(what, part.substr(part.find_first_not_of(" ~!?")));
  }
  return answers;
}

std::string stage::make_part(history const& what, std::string const& part) {
  auto words = parts_of(part, ' ');
  if (words[0] == "pause") {
    std::this_thread::sleep_for(std::chrono::milliseconds(std::stoi(words.at(1))));
    return {};
  }
  if (words[0] == "expire") {
    expire();
    return {};
  }
  return call(what, std::move(words));
}

// `expire`: whatever ends within a second.
void stage::expire() {
  auto const ends_soon = [&] {
    for (auto const& state : look()) {
      for (auto const& [key, one] : state.keys) {
        for (auto const& [of, instant] : one.instants) {
          if (of.empty() && instant - state.taken_ms < 1000) return true;
        }
      }
    }
    return false;
  };
  demand(wait_until([&] { return !ends_soon(); }), "a key does not end");
  // Its holder has known earlier, unless it is a sanitized one whose timer is late.
  if constexpr (slowness > 1) std::this_thread::sleep_for(30ms * slowness);
}

std::size_t stage::channels() {
  std::size_t result = 0;
  for (auto* server : servers_) result += server->admin().ok("PUBSUB", "CHANNELS").elements.size();
  return result;
}

std::string stage::call(history const& what, std::vector<std::string> words) {
  auto& actor = *actors_.at(words.at(0).substr(0, 1));
  auto const worker = "h" + words[0].substr(1);
  if (words.at(1) == "finish") return symbolic(peer::value_in(std::move(pending_.at(words[0])), words[0] + " finish"));
  bool const waits = words[1] == "begin";
  if (waits) words.erase(words.begin() + 1);
  auto kind = what.kind;
  auto operation = words[1];
  if (auto const dot = operation.find('.'); dot != std::string::npos) {
    kind = operation.substr(0, dot);
    operation = operation.substr(dot + 1);
  }
  std::vector<std::string> names{what.kind};
  for (int i = 1; i < what.names; ++i) names.push_back(what.kind + "-" + std::to_string(i));
  // A wait is parted among the servers, and 20 ms are few where everything is sanitized: then a server is not reached.
  if (slowness > 1 && operation == "try_lock" && what.names > 1 && words.size() > 2)
    words[2] = std::to_string(std::stoi(words[2]) * slowness);
  std::string line;
  for (std::size_t i = 2; i < words.size(); ++i) {
    auto const& word = words[i];
    line += (i == 2 ? "" : " ") + (word.starts_with('$') ? permits_.at(std::stoul(word.substr(1)) - 1) : word);
  }
  auto const listening = channels();
  auto future = line.empty() ? actor.start(worker, operation, kind, joined(names))
                             : actor.start(worker, operation, kind, joined(names), line);
  if (!waits) return symbolic(peer::value_in(std::move(future), operation));
  pending_[words[0]] = std::move(future);
  // Until it listens, if it does and if nobody did before; then it looks once more, of which nothing tells.
  wait_until([&] { return channels() > listening; }, 300ms);
  if (actor.library() == "Redisson") actor.call("observer", "await_blocked", kind, joined(names), worker, 300);
  std::this_thread::sleep_for(60ms);
  return {};
}

std::string stage::symbolic(answer const& got) {
  if (!got.ok) return "failed";
  if (!is_permit_id(got.value)) return got.value;
  permits_.push_back(got.value);
  auto const symbol = "permit" + std::to_string(permits_.size());
  table_.emplace_back(bytes_of(got.value), symbol);
  return symbol;
}

}  // namespace latchkey::test
