#pragma once
// What the small models share: rules that can be taken out, a breadth-first search over states of plain bytes, which
// shows a shortest history, and random walks where there are too many of them. Unlike in search.cpp states are compared
// whole.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <random>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

// A rule, or a number of the configuration, by its name on the command line: `name=value`.
struct setting {
  char const* name;
  int* value;
};

inline bool set(std::vector<setting> const& all, std::string const& word) {
  auto const at = word.find('=');
  for (auto const& one : all)
    if (at != word.npos && word.substr(0, at) == one.name) {
      *one.value = std::atoi(word.c_str() + at + 1);
      return true;
    }
  return false;
}

// The words that a program was called with: what it looks at, which is its title.
inline bool set(std::vector<setting> const& all, int count, char** words, std::string& title) {
  for (int i = 1; i < count; ++i) {
    if (!set(all, words[i])) {
      std::printf("unknown: %s\n", words[i]);
      return false;
    }
    title += std::string(words[i]) + " ";
  }
  return true;
}

// `State` has next(out), which appends what may come next with words for it, and wrong(), null or what is violated.
template <class State>
using successors = std::vector<std::pair<State, std::string>>;

template <class State>
class small_search {
 public:
  // 0: everything was looked at and nothing is wrong. 1: something is. 2: there was too much, unless `cut_off` allows
  // it.
  int run(State const& start, std::size_t most, std::string const& title, bool cut_off = false) {
    static_assert(std::is_trivially_copyable_v<State> && alignof(State) == 1);  // no gaps
    find_or_add(start, 0);
    successors<State> next;
    for (std::size_t at = 0; at < states_.size(); ++at) {
      State const now = states_[at];
      if (char const* what = now.wrong()) return tell(at, what, title);
      next.clear();
      now.next(next);
      for (auto const& one : next) find_or_add(one.first, at);
      if (states_.size() > most && cut_off) return none(title, " state-limit");
      if (states_.size() > most) {
        std::printf("%s: too many states\n", title.c_str());
        return 2;
      }
    }
    return none(title, "");
  }

 private:
  int none(std::string const& title, char const* how) const {
    std::printf("%s: states %zu seconds %.0f violations: none%s\n", title.c_str(), states_.size(),
                double(std::clock()) / CLOCKS_PER_SEC, how);
    return 0;
  }

  int tell(std::size_t bad, char const* what, std::string const& title) {
    std::vector<std::size_t> way;
    for (std::size_t at = bad; at != 0; at = from_[at]) way.push_back(at);
    std::string const name = std::string(what).substr(0, std::string(what).find(':'));
    std::printf("%s: states %zu violations: [%s %zu]\n  -- %s\n", title.c_str(), states_.size(), name.c_str(),
                way.size(), what);
    std::size_t before = 0;
    for (std::size_t k = way.size(); k-- > 0; before = way[k]) {
      successors<State> next;
      states_[before].next(next);
      for (auto const& one : next)
        if (std::memcmp(&one.first, &states_[way[k]], sizeof(State)) == 0) {
          std::printf("     %2zu %s\n", way.size() - k, one.second.c_str());
          break;
        }
    }
    return 1;
  }

  static std::uint64_t hash(State const& s) {
    auto const* bytes = reinterpret_cast<unsigned char const*>(&s);
    std::uint64_t h = 0x9E3779B97F4A7C15ull;
    for (std::size_t i = 0; i < sizeof(State); i += 8) {
      std::uint64_t part = 0;
      std::memcpy(&part, bytes + i, sizeof(State) - i < 8 ? sizeof(State) - i : 8);
      h = (h ^ part) * 0xD6E8FEB86659FD93ull;
      h ^= h >> 32;
    }
    return h;
  }

  void find_or_add(State const& s, std::size_t from) {
    if (states_.size() * 2 >= table_.size()) grow();
    std::size_t at = hash(s) & (table_.size() - 1);
    for (; table_[at]; at = (at + 1) & (table_.size() - 1))
      if (std::memcmp(&states_[table_[at] - 1], &s, sizeof(State)) == 0) return;
    states_.push_back(s);
    from_.push_back(static_cast<std::uint32_t>(from));
    table_[at] = static_cast<std::uint32_t>(states_.size());
  }

  void grow() {
    table_.assign(table_.empty() ? std::size_t{1} << 16 : table_.size() * 2, 0);
    for (std::size_t i = 0; i < states_.size(); ++i) {
      std::size_t at = hash(states_[i]) & (table_.size() - 1);
      while (table_[at]) at = (at + 1) & (table_.size() - 1);
      table_[at] = static_cast<std::uint32_t>(i + 1);
    }
  }

  std::vector<State> states_;
  std::vector<std::uint32_t> from_, table_;
};

// Random walks through the states of a model of which there are too many for a search.
// Each walk starts anew and follows from its seed. Of four steps three are the model's own, next_own(), where it has
// any: else it would hardly ever come to rest. A history that is found is printed as it is, not the shortest one.
template <class State>
int random_walks(State const& start, int length, int walks, int seed, std::string const& title) {
  unsigned long long steps = 0;
  successors<State> next;
  for (int walk = 0; walk < walks; ++walk) {
    std::mt19937_64 random(static_cast<std::uint64_t>(seed) * 1'000'003 + static_cast<std::uint64_t>(walk));
    State now = start;
    std::vector<std::string> history;
    for (int i = 0; i < length; ++i, ++steps) {
      next.clear();
      if (random() % 4 != 0) now.next_own(next);
      if (next.empty()) now.next(next);
      if (next.empty()) break;
      auto& one = next[random() % next.size()];
      now = one.first;
      history.push_back(std::move(one.second));
      if (char const* what = now.wrong()) {
        std::string const name = std::string(what).substr(0, std::string(what).find(':'));
        std::printf("%s: walks %d steps %llu violations: [%s %zu]\n  -- %s\n", title.c_str(), walk + 1, steps,
                    name.c_str(), history.size(), what);
        for (std::size_t k = 0; k < history.size(); ++k) std::printf("     %2zu %s\n", k + 1, history[k].c_str());
        return 1;
      }
    }
  }
  std::printf("%s: walks %d steps %llu seconds %.0f violations: none\n", title.c_str(), walks, steps,
              double(std::clock()) / CLOCKS_PER_SEC);
  return 0;
}
