#include <server_model/commands.hpp>

#include <algorithm>

namespace latchkey::model {

namespace {

using scored = keyspace::scored_value;

template <class Answer>
reply with_set(surroundings& at, words_view words, Answer answer) {
  bool refused = false;
  scored* const found = look_up<scored>(at, words[1], refused);
  return refused ? wrong_type() : answer(found);
}

reply not_a_float() { return error("ERR value is not a valid float"); }

scored::iterator member_of(scored& one, std::string const& member) {
  return std::find_if(one.begin(), one.end(), [&](auto const& pair) { return pair.second == member; });
}

bool put(scored& one, double score, std::string const& member) {
  auto const there = member_of(one, member);
  bool const fresh = there == one.end();
  if (!fresh) one.erase(there);
  std::pair<double, std::string> made(score, member);
  one.insert(std::upper_bound(one.begin(), one.end(), made), std::move(made));
  return fresh;
}

void drop_if_empty(surroundings& at, std::string const& key, scored const& one) {
  if (one.empty()) at.data.remove(key);
}

reply zadd(surroundings& at, words_view words) {
  if (words.size() % 2 != 0) return syntax_error();
  for (std::size_t i = 2; i < words.size(); i += 2)
    if (!score_of(words[i])) return not_a_float();
  return with_set(at, words, [&](scored* found) {
    scored& one = found ? *found : std::get<scored>(at.data.make(words[1], scored{}).holds);
    std::int64_t fresh = 0;
    for (std::size_t i = 2; i < words.size(); i += 2) fresh += put(one, *score_of(words[i]), words[i + 1]);
    return number(fresh);
  });
}

reply zincrby(surroundings& at, words_view words) {
  auto const by = score_of(words[2]);
  if (!by) return not_a_float();
  return with_set(at, words, [&](scored* found) {
    scored& one = found ? *found : std::get<scored>(at.data.make(words[1], scored{}).holds);
    auto const there = member_of(one, words[3]);
    double const sum = (there == one.end() ? 0 : there->first) + *by;
    put(one, sum, words[3]);
    return text(shown(sum));
  });
}

reply zrem(surroundings& at, words_view words) {
  return with_set(at, words, [&](scored* found) {
    if (!found) return number(0);
    std::int64_t gone = 0;
    for (auto const& member : words.subspan(2)) {
      auto const there = member_of(*found, member);
      if (there == found->end()) continue;
      found->erase(there);
      ++gone;
    }
    drop_if_empty(at, words[1], *found);
    return number(gone);
  });
}

reply zscore(surroundings& at, words_view words) {
  return with_set(at, words, [&](scored* found) {
    if (!found) return reply{};
    auto const there = member_of(*found, words[2]);
    return there == found->end() ? reply{} : text(shown(there->first));
  });
}

reply zrank(surroundings& at, words_view words) {
  return with_set(at, words, [&](scored* found) {
    if (!found) return reply{};
    auto const there = member_of(*found, words[2]);
    return there == found->end() ? reply{} : number(there - found->begin());
  });
}

reply zcard(surroundings& at, words_view words) {
  return with_set(at, words,
                  [](scored* found) { return number(found ? static_cast<std::int64_t>(found->size()) : 0); });
}

reply zrange(surroundings& at, words_view words) {
  auto const from = integer_of(words[2]), to = integer_of(words[3]);
  if (!from || !to) return not_an_integer();
  bool const scores = words.size() > 4 && lower(words[4]) == "withscores";
  if (words.size() > (scores ? 5u : 4u)) return syntax_error();
  return with_set(at, words, [&](scored* found) {
    reply made = array();
    std::int64_t first = *from, last = *to;
    if (!found || !cut_range(first, last, found->size())) return made;
    for (auto i = first; i <= last; ++i) {
      auto const& [score, member] = (*found)[static_cast<std::size_t>(i)];
      made.elements.push_back(text(member));
      if (scores) made.elements.push_back(text(shown(score)));
    }
    return made;
  });
}

reply zremrangebyrank(surroundings& at, words_view words) {
  auto const from = integer_of(words[2]), to = integer_of(words[3]);
  if (!from || !to) return not_an_integer();
  return with_set(at, words, [&](scored* found) {
    std::int64_t first = *from, last = *to;
    if (!found || !cut_range(first, last, found->size())) return number(0);
    found->erase(found->begin() + first, found->begin() + last + 1);
    drop_if_empty(at, words[1], *found);
    return number(last - first + 1);
  });
}

// An end of a range of scores: `(5` leaves 5 out.
struct bound {
  double score = 0;
  bool open = false;
};

std::optional<bound> bound_of(std::string_view word) {
  bool const open = word.starts_with('(');
  auto const score = score_of(open ? word.substr(1) : word);
  return score ? std::optional(bound{*score, open}) : std::nullopt;
}

bool lies(double score, bound const& low, bound const& high) {
  bool const above = low.open ? score > low.score : score >= low.score;
  return above && (high.open ? score < high.score : score <= high.score);
}

// The three commands that take a range of scores.
enum class range_use { count, list, remove };

reply by_score(surroundings& at, words_view words, range_use use) {
  bool scores = false;
  std::int64_t skip = 0, most = -1;
  for (std::size_t i = 4; i < words.size(); ++i) {
    std::string const option = lower(words[i]);
    if (use == range_use::list && option == "withscores") {
      scores = true;
    } else if (use == range_use::list && option == "limit" && i + 2 < words.size()) {
      auto const first = integer_of(words[i + 1]), count = integer_of(words[i + 2]);
      if (!first || !count) return not_an_integer();
      skip = *first;
      most = *count;
      i += 2;
    } else {
      return syntax_error();
    }
  }
  auto const low = bound_of(words[2]), high = bound_of(words[3]);
  if (!low || !high) return error("ERR min or max is not a float");
  return with_set(at, words, [&](scored* found) {
    reply made = array();
    std::int64_t hits = 0;
    for (std::size_t i = 0; found && i < found->size();) {
      auto const& [score, member] = (*found)[i];
      if (!lies(score, *low, *high)) {
        ++i;
        continue;
      }
      std::int64_t const index = hits++;
      if (use == range_use::remove) {
        found->erase(found->begin() + static_cast<std::ptrdiff_t>(i));
        continue;
      }
      if (skip >= 0 && index >= skip && (most < 0 || index < skip + most)) {
        made.elements.push_back(text(member));
        if (scores) made.elements.push_back(text(shown(score)));
      }
      ++i;
    }
    if (use == range_use::remove && found) drop_if_empty(at, words[1], *found);
    return use == range_use::list ? made : number(hits);
  });
}

constexpr command sorted_set_table[] = {
    {"zadd", -4, command::grows, zadd},
    {"zincrby", 4, command::grows, zincrby},
    {"zrem", -3, command::writes, zrem},
    {"zscore", 3, command::reads, zscore},
    {"zrank", 3, command::reads, zrank},
    {"zcard", 2, command::reads, zcard},
    {"zrange", -4, command::reads, zrange},
    {"zcount", 4, command::reads,
     [](surroundings& at, words_view words) { return by_score(at, words, range_use::count); }},
    {"zrangebyscore", -4, command::reads,
     [](surroundings& at, words_view words) { return by_score(at, words, range_use::list); }},
    {"zremrangebyrank", 4, command::writes, zremrangebyrank},
    {"zremrangebyscore", 4, command::writes,
     [](surroundings& at, words_view words) { return by_score(at, words, range_use::remove); }},
};

}  // namespace

commands_view sorted_set_commands() { return sorted_set_table; }

}  // namespace latchkey::model
