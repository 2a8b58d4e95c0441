#pragma once

#include <support/catch.hpp>
#include <support/unit/world.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <vector>

namespace latchkey::test {

// Whether a hand-off on the server is a local turn soon, never, or at once.
inline constexpr std::array warm_ups{1, 2, 128, 0};

// One of the calls that fit, if there is one.
inline task* any(world& w, bool (*fits)(task&)) {
  std::vector<task*> all;
  for (auto const& one : w.tasks())
    if (fits(*one)) all.push_back(one.get());
  return all.empty() ? nullptr : all[w.random(all.size())];
}

inline bool waits(task& one) { return one.what == task::type::acquire && !one.done(); }
inline bool held(task& one) { return one.granted() && !one.ended; }
inline bool kept(task& one) { return held(one) && !one.shown.lost; }

// One more call, or the end of an earlier one. `anyhow`: how an acquire is asked for.
template <class Anyhow>
void call_at_random(world& w, std::uint64_t owner, Anyhow const& anyhow, std::uint64_t longest_extension) {
  switch (w.random(8)) {
    case 0:
    case 1:
    case 2: w.acquire(owner, anyhow()); return;
    case 3: w.once(owner, anyhow()); return;
    case 4:
      if (task* one = any(w, held)) w.release(*one, w.random(2) == 0);
      return;
    case 5:
      if (task* one = any(w, held)) w.drop(*one);
      return;
    case 6:
      if (task* one = any(w, kept)) w.extend(*one, milliseconds(500 + w.random(longest_extension)), w.random(2) == 0);
      return;
    default:
      if (task* one = any(w, waits)) w.cancel(*one);
  }
}

// Plays the walks of all seeds from 1 on. The environment chooses others: LATCHKEY_SEED=n that one alone,
// LATCHKEY_WALKS=n so many, LATCHKEY_FIRST=n from this one on. A seed that fails is printed.
class seeds {
 public:
  explicit seeds(std::uint64_t usual)
      : one_(number("LATCHKEY_SEED")),
        many_(number("LATCHKEY_WALKS")),
        first_(one_ ? one_ : std::max<std::uint64_t>(number("LATCHKEY_FIRST"), 1)),
        count_(one_    ? 1
               : many_ ? many_
                       : usual) {}

  bool one() const { return one_ > 0; }
  bool more_than_usual() const { return many_ > 0; }
  std::uint64_t count() const { return count_; }

  template <class Walk>
  void each(Walk const& walk) const {
    for (std::uint64_t seed = first_; seed < first_ + count_; ++seed) {
      try {
        walk(seed);
      } catch (violation const& broken) {
        FAIL("seed " << seed << ": " << broken.what());
      }
    }
  }

 private:
  static std::uint64_t number(char const* name) {
    char const* const text = std::getenv(name);
    return text ? std::strtoull(text, nullptr, 10) : 0;
  }

  std::uint64_t const one_, many_, first_, count_;
};

}  // namespace latchkey::test
