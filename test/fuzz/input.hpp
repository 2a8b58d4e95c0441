#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

namespace latchkey::fuzz {

// The bytes that the fuzzer chose, taken one after another as decisions. Behind their end every decision is the first.
class input {
 public:
  input(std::uint8_t const* bytes, std::size_t size) : rest_(reinterpret_cast<char const*>(bytes), size) {}

  bool empty() const { return rest_.empty(); }
  std::string_view rest() const { return rest_; }

  unsigned char byte() {
    if (rest_.empty()) return 0;
    auto const taken = static_cast<unsigned char>(rest_.front());
    rest_.remove_prefix(1);
    return taken;
  }
  // In [0, below). Digits choose themselves, so that seeds can be written by hand.
  std::size_t pick(std::size_t below) {
    unsigned const taken = byte();
    return (taken >= '0' && taken <= '9' ? taken - '0' : taken) % below;
  }
  bool flip() { return pick(2) == 1; }
  std::string_view text(std::size_t most) {
    auto const taken = rest_.substr(0, pick(most + 1));
    rest_.remove_prefix(taken.size());
    return taken;
  }
  template <class T, std::size_t n>
  T const& any(T const (&of)[n]) {
    return of[pick(n)];
  }

 private:
  std::string_view rest_;
};

// A broken rule ends the program, as a memory error does; the fuzzer then keeps the bytes.
inline void must(bool kept, char const* rule) {
  if (kept) return;
  std::fprintf(stderr, "BROKEN RULE: %s\n", rule);
  std::abort();
}

}  // namespace latchkey::fuzz
