#include <simulation/kinds.hpp>
#include <simulation/randomness.hpp>
#include <support/catch.hpp>
#include <support/redis_server.hpp>

#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

using namespace latchkey;
using namespace latchkey::simulation;

// The same random calls on a real server and on the modelled one: the same answers, keys and times to live. It knows
// every command of the model and every script of the simulated kinds.

namespace {

using words_type = std::vector<std::string>;

constexpr int calls = 10'000;

// How the arguments of a command look. k key, f field or member, i number, t length of time, A point in time, s score,
// n index, b end of a range of scores, v value, O options of SET, L options of a range, + the rest once or twice more.
std::map<std::string_view, std::string_view> const arguments = {{"exists", "k+k"},
                                                                {"del", "k+k"},
                                                                {"unlink", "k+k"},
                                                                {"type", "k"},
                                                                {"pttl", "k"},
                                                                {"ttl", "k"},
                                                                {"pexpire", "kt"},
                                                                {"expire", "kt"},
                                                                {"pexpireat", "kA"},
                                                                {"persist", "k"},
                                                                {"rename", "kk"},
                                                                {"publish", "kv"},
                                                                {"spublish", "kv"},
                                                                {"get", "k"},
                                                                {"set", "kiO"},
                                                                {"incr", "k"},
                                                                {"decr", "k"},
                                                                {"incrby", "ki"},
                                                                {"decrby", "ki"},
                                                                {"hget", "kf"},
                                                                {"hexists", "kf"},
                                                                {"hlen", "k"},
                                                                {"hkeys", "k"},
                                                                {"hvals", "k"},
                                                                {"hgetall", "k"},
                                                                {"hset", "kfi+fi"},
                                                                {"hsetnx", "kfi"},
                                                                {"hincrby", "kfi"},
                                                                {"hdel", "kf+f"},
                                                                {"lpush", "kf+f"},
                                                                {"rpush", "kf+f"},
                                                                {"lpop", "k"},
                                                                {"rpop", "k"},
                                                                {"llen", "k"},
                                                                {"lindex", "kn"},
                                                                {"lrange", "knn"},
                                                                {"lpos", "kf"},
                                                                {"lrem", "knf"},
                                                                {"zadd", "ksf+sf"},
                                                                {"zincrby", "ksf"},
                                                                {"zrem", "kf+f"},
                                                                {"zscore", "kf"},
                                                                {"zrank", "kf"},
                                                                {"zcard", "k"},
                                                                {"zrange", "knnW"},
                                                                {"zcount", "kbb"},
                                                                {"zrangebyscore", "kbbL"},
                                                                {"zremrangebyrank", "knn"},
                                                                {"zremrangebyscore", "kbb"}};

constexpr char const* fields[] = {"a:1", "a:2", "stranger:1"};
constexpr char const* numbers[] = {"0", "1", "-1", "2", "7", "x", "1.5", "9223372036854775807", "-9223372036854775808",
                                   "01"};
constexpr char const* lengths[] = {"100000", "900000", "3000000", "0", "-5", "y", "9223372036854775807"};
constexpr char const* points[] = {"1", "99999999999999", "z"};
constexpr char const* scores[] = {"1", "2", "2.5", "-3", "1000000000000", "inf", "q"};
constexpr char const* ends[] = {"1", "(1", "-inf", "+inf", "2.5", "(2.5", "w"};
constexpr char const* indexes[] = {"0", "1", "-1", "2", "-2", "5", "e"};

class caller {
 public:
  explicit caller(std::uint64_t seed) : dice_(seed) {}

  words_type any() { return dice_.below(10) < 4 ? script() : plain(); }
  std::uint64_t below(std::uint64_t n) { return dice_.below(n); }

 private:
  std::string key() {
    constexpr char const* names[] = {"k", "l", "{m}n", "k", "l", "other"};
    return dice_.of(names);
  }

  void append(words_type& out, char what) {
    switch (what) {
      case 'k': out.push_back(key()); return;
      case 'f': out.push_back(dice_.of(fields)); return;
      case 'i': out.push_back(numbers[dice_.below(dice_.one_in(4) ? std::size(numbers) : 5)]); return;
      case 't': out.push_back(lengths[dice_.below(dice_.one_in(4) ? std::size(lengths) : 3)]); return;
      case 'A': out.push_back(dice_.of(points)); return;
      case 's': out.push_back(scores[dice_.below(dice_.one_in(6) ? std::size(scores) : 5)]); return;
      case 'b': out.push_back(dice_.of(ends)); return;
      case 'n': out.push_back(indexes[dice_.below(dice_.one_in(6) ? std::size(indexes) : 6)]); return;
      case 'v': out.push_back("0"); return;
      case 'W':
        if (dice_.one_in(2)) out.push_back("WITHSCORES");
        return;
      case 'L':
        if (dice_.one_in(3)) out.push_back("withscores");
        if (dice_.one_in(2)) out.insert(out.end(), {"LIMIT", dice_.of(indexes), dice_.of(indexes)});
        return;
      case 'O':
        if (dice_.one_in(3)) out.push_back(dice_.one_in(2) ? "NX" : "xx");
        if (dice_.one_in(3)) out.insert(out.end(), {dice_.one_in(2) ? "PX" : "ex", dice_.of(lengths)});
        if (dice_.one_in(6)) out.push_back("KEEPTTL");
        return;
      default: FAIL("no such argument: " << what);
    }
  }

  words_type plain() {
    auto const& all = all_commands();
    command const* chosen = &all[dice_.below(all.size())];
    while (chosen->name == "time") chosen = &all[dice_.below(all.size())];
    auto const found = arguments.find(chosen->name);
    INFO("how the arguments of " << chosen->name << " look is to be said in this file");
    REQUIRE(found != arguments.end());
    std::string_view const pattern = found->second;
    words_type made = {std::string(chosen->name)};
    auto const more = pattern.find('+');
    for (char what : pattern.substr(0, more)) append(made, what);
    if (more != pattern.npos)
      for (auto times = dice_.below(3); times > 0; --times)
        for (char what : pattern.substr(more + 1)) append(made, what);
    if (dice_.one_in(40)) made.pop_back();
    return made;
  }

  // Any script of any kind, with one to three items.
  words_type script() {
    auto const& kinds = simulated_kinds();
    auto const& kind = *kinds[dice_.below(kinds.size())];
    auto const scripts = kind.scripts();
    auto const& text = *scripts[dice_.below(scripts.size())].first;
    detail::words keys, rest;
    for (auto items = 1 + dice_.below(3); items > 0; --items) add_item(kind.which, text, keys, rest);
    if (text.publishes()) rest.add(detail::publisher(false));
    bool const whole = dice_.one_in(3);
    words_type made = {whole ? "EVAL" : "EVALSHA", std::string(whole ? text.text() : text.sha()),
                       std::to_string(keys.size())};
    for (auto const& list : {keys.view(), rest.view()}) made.insert(made.end(), list.begin(), list.end());
    return made;
  }

  void add_item(detail::kind const& kind, detail::script const& text, detail::words& keys, detail::words& rest) {
    using detail::ask;
    std::string const name = key(), from = field_of(kind), to = field_of(kind), about = field_of(kind);
    detail::item one{.mode = static_cast<unsigned char>(dice_.below(kind.rules().modes)),
                     .name = name,
                     .field = from,
                     .to_field = to,
                     .target = static_cast<std::int64_t>(dice_.below(3)),
                     .lease = static_cast<std::int64_t>(100'000 + dice_.below(3) * 500'000),
                     .wait = static_cast<std::int64_t>(dice_.below(2)),
                     .line_time = static_cast<std::int64_t>(100'000 + dice_.below(3) * 500'000),
                     .enters_line = dice_.one_in(2),
                     .amount = static_cast<std::int64_t>(1 + dice_.below(3)),
                     .argument = about,
                     .repeated = dice_.one_in(4)};
    what_of(kind, text, one);
    kind.add_keys(one, keys);
    kind.add_arguments(one, rest);
  }

  std::string field_of(detail::kind const& kind) {
    return kind.field(dice_.one_in(2) ? "a" : "b", 1 + dice_.below(3), 0);
  }

  // Which request this is the script of.
  static void what_of(detail::kind const& kind, detail::script const& text, detail::item& out) {
    using detail::ask;
    constexpr ask asks[] = {ask::acquire, ask::release,      ask::hand_off, ask::renew,
                            ask::extend,  ask::force_unlock, ask::leave};
    for (ask const what : asks) try {
        if (&kind.script_for(what) != &text) continue;
        out.what = what;
        return;
      } catch (std::logic_error const&) {
      }
    out.what = ask::command;
    for (unsigned char command = 0; command < 16; ++command) try {
        if (&kind.command_script(command) != &text) continue;
        out.command = command;
        return;
      } catch (std::logic_error const&) {
      }
  }

  dice dice_;
};

struct nobody final : server_user {
  void answered(std::uint32_t, std::string&&) override {}
  void dropped(std::uint32_t) override {}
  void hung_up(std::uint32_t) override {}
  void ran(std::uint32_t, words_view, reply const&) override {}
};

std::string shown(reply const& said) {
  std::string made;
  encode(said, made);
  return made;
}

// Times to live go on between the two calls. `in_list`: as scripts answer; no count in such an answer is above 20.
bool same(reply const& real, reply const& model, bool in_list = false) {
  constexpr std::int64_t most_late = 2'000;
  if (real.kind != model.kind || real.elements.size() != model.elements.size()) return false;
  for (std::size_t i = 0; i < real.elements.size(); ++i)
    if (!same(real.elements[i], model.elements[i], true)) return false;
  auto const close = [in_list](std::int64_t a, std::int64_t b) {
    bool const time = a > 5'000 && a < 10'000'000'000'000'000;
    bool const hint = a > 100 && a <= 5'000;                // what is left of a score that was written by another clock
    bool const short_hint = in_list && a > 20 && a <= 100;  // rounded down by each
    return std::abs(a - b) <= (time ? most_late : hint ? 100 : short_hint ? 1 : 0);
  };
  if (!close(real.integer, model.integer)) return false;
  // The end of a lease or of a wait, as a score.
  auto const first = integer_of(real.text), second = integer_of(model.text);
  if (first && second && *first > 1'000'000'000'000) return close(*first, *second);
  auto const words = [](std::string const& text) { return text.substr(0, text.find_last_not_of("\r\n") + 1); };
  return words(real.text) == words(model.text);
}

}  // namespace

TEST_CASE("truth: the modelled server answers 10,000 random calls as a real one does") {
  test::redis_server real;
  auto redis = real.admin();
  lua_scripts scripts;
  nobody nobody_listens;
  simulation::server model(scripts, nobody_listens);
  caller chances(20'261'121);
  auto const at = [&](reply const& time) {
    model.data.microseconds = std::stoll(time.elements[0].text) * 1'000'000 + std::stoll(time.elements[1].text);
    model.data.now = model.data.microseconds / 1'000;
  };
  // The real one ran it between two times that it told: the model has to agree at one of them.
  auto const ask_both = [&](words_type const& words) {
    // Together, since this process may stand still between one sending and the next.
    redis.send_together({{"TIME"}, words, {"TIME"}});
    auto const before = redis.receive(), said = redis.receive(), after = redis.receive();
    auto const agrees = [&](reply const& modelled) {
      bool const time_left = words[0] == "PTTL" && said.integer >= 0 && modelled.integer >= 0;
      if (time_left && std::abs(said.integer - modelled.integer) <= 2'000) return true;
      return same(said, modelled);
    };
    auto const kept = model.data;
    at(before);
    auto modelled = model.execute(words);
    if (!agrees(modelled)) {
      model.data = kept;
      at(after);
      modelled = model.execute(words);
    }
    std::string line;
    for (auto const& word : words) line += word + " ";
    INFO(line);
    INFO("real:  " << shown(said));
    INFO("model: " << shown(modelled));
    if (!agrees(modelled)) FAIL("they differ");
    return said;
  };
  int left_in_mood = 0;
  for (int i = 0; i < calls; ++i) {
    if (left_in_mood == 0 && chances.below(100) == 0) {
      left_in_mood = 20;
      model.full = chances.below(2) == 0;
      model.read_only = !model.full;
      if (model.full)
        redis.ok("CONFIG", "SET", "maxmemory", "1");
      else
        redis.ok("REPLICAOF", "127.0.0.1", "1");
    } else if (left_in_mood > 0 && --left_in_mood == 0) {
      if (model.full)
        redis.ok("CONFIG", "SET", "maxmemory", "0");
      else
        redis.ok("REPLICAOF", "NO", "ONE");
      model.full = model.read_only = false;
    }
    ask_both(chances.any());
    if (i % 50 != 0) continue;
    std::set<std::string> all;  // of both, as some end between two calls
    for (auto const& key : model.data.keys()) all.insert(key);
    for (auto const& key : redis.ok("KEYS", "*").elements) all.insert(key.text);
    for (auto const& key : all) {
      auto const type = ask_both({"TYPE", key}).text;
      ask_both({"PTTL", key});
      if (type == "string") ask_both({"GET", key});
      if (type == "hash") ask_both({"HGETALL", key});
      if (type == "list") ask_both({"LRANGE", key, "0", "-1"});
      if (type == "zset") ask_both({"ZRANGE", key, "0", "-1", "WITHSCORES"});
    }
  }
  SUCCEED();
}
