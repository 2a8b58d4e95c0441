#pragma once

#include <cstdint>

namespace latchkey::simulation {

// splitmix64: one step of it is also a good hash, so that any number can be drawn by its place alone.
constexpr std::uint64_t mix(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

template <class... More>
constexpr std::uint64_t mix(std::uint64_t a, std::uint64_t b, More... more) {
  return mix(mix(a) ^ b, static_cast<std::uint64_t>(more)...);
}

// Random numbers that replay with their seed.
class dice {
 public:
  explicit dice(std::uint64_t seed) : state_(seed) {}

  std::uint64_t any() {
    state_ += 0x9E3779B97F4A7C15u;
    return mix(state_);
  }
  // In [0, below).
  std::uint64_t below(std::uint64_t limit) { return any() % limit; }
  // In [low, high].
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(below(static_cast<std::uint64_t>(high - low) + 1));
  }
  bool one_in(std::uint64_t n) { return below(n) == 0; }
  template <class T, std::size_t Size>
  T const& of(T const (&choices)[Size]) {
    return choices[below(Size)];
  }

 private:
  std::uint64_t state_;
};

}  // namespace latchkey::simulation
