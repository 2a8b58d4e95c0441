// Explicit-state model of one lock name in one client: up to three owners (a, c, d), a shared and a direct lane, a
// message connection, the outbox, discarded connections whose bytes may still run, KILL, and a stranger B.
//
//   g++ -O2 -std=c++20 search.cpp -o model      ./model help      ./model owners=2 timeouts=1 ticks=0
//
// How to read it: a `state` (state.hpp) is the whole world. `all_steps` (steps.hpp, users.hpp) makes every state that
// may come next; the client's part in them is class `model` (queue, requests, answers, engine). `check` (users.hpp)
// says what must be true. This file searches breadth first, so every history that is printed is a shortest one; with
// walk=N it walks at random. Time is counted in ticks: a watchdog lease lasts 2, a long one 3, a short one 1. Visited
// states are kept as 64-bit hashes.

#include "users.hpp"

#include <ctime>
#include <deque>
#include <map>

namespace {

u32 left_out = 0;

std::uint64_t hash(state const& s) {
  u8 const* p = reinterpret_cast<u8 const*>(&s);
  std::uint64_t h = 0x9E3779B97F4A7C15ull;
  for (std::size_t i = 0; i < sizeof s; i += 8) {
    std::uint64_t part = 0;
    std::memcpy(&part, p + i, sizeof s - i < 8 ? sizeof s - i : 8);
    h = (h ^ part) * 0xD6E8FEB86659FD93ull;
    h ^= h >> 32;
  }
  h *= 0xD6E8FEB86659FD93ull;
  return h ^ h >> 29;
}

// The states that were seen, by number, with the way back to each.
class visited {
 public:
  visited() : table_(1 << 20, 0) {}

  // The state's number; `fresh` if it was not seen before.
  u32 add(state const& s, u32 from, unsigned ordinal, bool& fresh) {
    if (hashes_.size() * 2 > table_.size()) grow();
    std::uint64_t const key = hash(s);
    std::size_t at = key & (table_.size() - 1);
    for (; table_[at]; at = (at + 1) & (table_.size() - 1))
      if (hashes_[table_[at] - 1] == key) {
        fresh = false;
        return table_[at] - 1;
      }
    fresh = true;
    hashes_.push_back(key), from_.push_back(from), ordinal_.push_back(std::uint16_t(ordinal));
    table_[at] = u32(hashes_.size());
    return u32(hashes_.size() - 1);
  }

  std::size_t size() const { return hashes_.size(); }

  std::vector<std::string> history(u32 to, state now) const {
    std::vector<unsigned> way;
    for (u32 i = to; i; i = from_[i]) way.push_back(ordinal_[i]);
    std::vector<std::string> out;
    for (std::size_t k = way.size(); k--;) {
      successors next;
      u32 ignored = 0;
      all_steps(now, next, ignored);
      out.push_back(words(next[way[k]].second));
      now = next[way[k]].first;
    }
    out.push_back("=> " + words(now));
    return out;
  }

 private:
  void grow() {
    std::vector<u32> wider(table_.size() * 2, 0);
    for (u32 i = 0; i < hashes_.size(); ++i) {
      std::size_t at = hashes_[i] & (wider.size() - 1);
      while (wider[at]) at = (at + 1) & (wider.size() - 1);
      wider[at] = i + 1;
    }
    table_.swap(wider);
  }

  std::vector<std::uint64_t> hashes_;
  std::vector<u32> from_, table_;
  std::vector<std::uint16_t> ordinal_;
};

using histories = std::map<std::string, std::vector<std::string>>;

void keep(histories& found, std::string const& what, std::vector<std::string> history) {
  auto& shortest = found[what];
  if (shortest.empty() || shortest.size() > history.size()) shortest = std::move(history);
}

// Time of the processor, so that a busy machine looks no less far.
struct stopwatch {
  double seconds() const { return double(std::clock()) / CLOCKS_PER_SEC; }
};

// Internal steps alone must come to an end: states without an internal way on are peeled off until none is left.
bool endless(std::size_t states, std::vector<std::pair<u32, u32>> const& edges) {
  std::vector<u32> ways(states, 0), first(states + 1, 0), from(edges.size()), bare;
  for (auto& [a, b] : edges) ++ways[a], ++first[b + 1];
  for (std::size_t i = 0; i < states; ++i) first[i + 1] += first[i];
  std::vector<u32> at(first);
  for (auto& [a, b] : edges) from[at[b]++] = a;
  for (u32 i = 0; i < states; ++i)
    if (!ways[i]) bare.push_back(i);
  std::size_t peeled = 0;
  for (; !bare.empty(); ++peeled) {
    u32 const i = bare.back();
    bare.pop_back();
    for (u32 k = first[i]; k < first[i + 1]; ++k)
      if (--ways[from[k]] == 0) bare.push_back(from[k]);
  }
  return peeled < states;
}

histories search(state const& start, stopwatch const& clock, std::string& counts) {
  histories found;
  visited seen;
  std::deque<std::pair<u32, state>> open;
  std::vector<std::pair<u32, u32>> edges;
  successors next;
  std::vector<std::string> bad;
  std::uint64_t transitions = 0;
  char const* stopped = "";
  bool fresh = false;
  open.emplace_back(seen.add(start, 0, 0, fresh), start);
  auto const report = [&](u32 at, std::string const& what, std::string const& last) {
    if (found.count(what)) return;
    auto history = seen.history(at, start);
    if (!last.empty()) history.insert(history.end() - 1, last);
    found[what] = std::move(history);
  };
  for (std::size_t n = 0; !open.empty() && !(o.first && !found.empty()); ++n) {
    if ((n & 0xfff) == 0 && clock.seconds() > o.secs) stopped = " time-limit";
    if (seen.size() > std::size_t(o.limit)) stopped = " state-limit";
    if (*stopped) break;
    auto const [number, now] = open.front();
    open.pop_front();
    next.clear();
    all_steps(now, next, left_out);
    bool internal = false;
    for (auto& one : next) internal |= one.second.internal;
    bad.clear();
    if (!internal) check_end(now, bad);
    for (auto& what : bad) report(number, what, {});
    for (unsigned i = 0; i < next.size(); ++i) {
      auto& [after, how] = next[i];
      ++transitions;
      if (how.violation) {  // nothing behind a violation is looked at
        report(number, how.violation, words(how));
        continue;
      }
      u32 const id = seen.add(after, number, i, fresh);
      if (o.cycles && how.internal) edges.emplace_back(number, id);
      if (!fresh) continue;
      bad.clear();
      check(after, bad);
      for (auto& what : bad) report(id, what, {});
      if (bad.empty()) open.emplace_back(id, after);
    }
  }
  if (o.cycles && !*stopped && endless(seen.size(), edges)) found["LIVELOCK: internal steps can go on for ever"] = {};
  char text[120];
  std::snprintf(text, sizeof text, "states %zu transitions %llu%s", seen.size(), (unsigned long long)transitions,
                stopped);
  counts = text;
  return found;
}

histories wander(state const& start, stopwatch const& clock, std::string& counts) {
  histories found;
  std::uint64_t random = 88172645463325252ull * (std::uint64_t(o.seed) * 2 + 1), steps = 0, walks = 0;
  auto const dice = [&] {
    random ^= random << 13, random ^= random >> 7, random ^= random << 17;
    return random >> 11;
  };
  successors next;
  std::vector<std::string> bad;
  for (; clock.seconds() < o.secs && (!o.walks || walks < std::uint64_t(o.walks)); ++walks) {
    state now = start;
    std::vector<step> way;
    std::uint64_t const haste = 4 + dice() % 4;
    for (int n = 0; n < o.walk; ++n) {
      next.clear(), bad.clear();
      all_steps(now, next, left_out);
      if (next.empty()) break;
      std::vector<std::size_t> internal, rest;
      for (std::size_t i = 0; i < next.size(); ++i) (next[i].second.internal ? internal : rest).push_back(i);
      if (internal.empty()) check_end(now, bad);
      bool const inner = !internal.empty() && (rest.empty() || dice() % 8 < haste);
      auto const& from = inner ? internal : rest;
      auto const& [after, how] = next[from[dice() % from.size()]];
      ++steps;
      way.push_back(how);
      if (how.violation) bad.push_back(how.violation);
      check(after, bad);
      now = after;
      if (bad.empty()) continue;
      std::vector<std::string> history;
      for (auto& one : way) history.push_back(words(one));
      history.push_back("=> " + words(now));
      for (auto& what : bad) keep(found, what, history);
      break;
    }
    if (o.first && !found.empty()) break;
  }
  char text[120];
  std::snprintf(text, sizeof text, "walks %llu steps %llu", (unsigned long long)walks, (unsigned long long)steps);
  counts = text;
  return found;
}

}  // namespace

int main(int count, char** arguments) {
  std::string asked;
  for (int i = 1; i < count; ++i) {
    if (!set_option(arguments[i])) {
      std::printf("usage: model [option=value]...\n");
      print_options();
      return 2;
    }
    asked += std::string(arguments[i]) + " ";
  }
  state start;
  std::memset(&start, 0, sizeof start);
  stopwatch const clock;
  std::string counts;
  histories const found = o.walk ? wander(start, clock, counts) : search(start, clock, counts);
  std::printf("%s: %s seconds %.0f%s violations:", asked.c_str(), counts.c_str(), clock.seconds(),
              left_out ? " (some queues were full)" : "");
  for (auto& [what, history] : found)
    std::printf(" [%s %zu]", what.substr(0, what.find(':')).c_str(), history.empty() ? 0 : history.size() - 1);
  std::printf("%s\n", found.empty() ? " none" : "");
  for (auto& [what, history] : found) {
    if (!o.verbose) break;
    std::printf("  -- %s\n", what.c_str());
    for (std::size_t k = 0; k < history.size(); ++k) std::printf("     %2zu %s\n", k + 1, history[k].c_str());
  }
  return found.empty() ? 0 : 1;
}
