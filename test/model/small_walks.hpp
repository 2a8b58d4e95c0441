#pragma once
// Random walks through the states of a small model, where there are too many for a search.

#include "small_search.hpp"

#include <random>

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
