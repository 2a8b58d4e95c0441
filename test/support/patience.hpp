#pragma once

#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define LATCHKEY_TEST_SANITIZED
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define LATCHKEY_TEST_SANITIZED
#endif
#endif

namespace latchkey::test {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

#ifdef LATCHKEY_TEST_SANITIZED
inline constexpr int slowness = 4;
#else
inline constexpr int slowness = 1;
#endif

// How long a test waits for what must happen. It only guards against hanging; nothing that works takes so long.
inline constexpr std::chrono::milliseconds patience = 15s * slowness;

// What takes long has a short form, and is done whole with `scripts/test --long`.
inline bool in_long_form() { return std::getenv("LATCHKEY_LONG") != nullptr; }

// A bound that docs/topology-cases.md asks for, and what is enough on a machine whose two cores do all else beside it.
// With LATCHKEY_BOUNDS=tight in the environment it is as asked.
inline std::chrono::milliseconds bound(std::chrono::milliseconds asked, std::chrono::milliseconds enough) {
  char const* const bounds = std::getenv("LATCHKEY_BOUNDS");
  return (bounds && std::string_view(bounds) == "tight" ? asked : enough) * slowness;
}

// Looks again and again until the predicate holds: for what tells nobody that it happened.
template <class Predicate>
bool wait_until(Predicate holds, std::chrono::milliseconds limit = patience) {
  auto const end = clock::now() + limit;
  while (!holds()) {
    if (clock::now() >= end) return holds();
    std::this_thread::sleep_for(2ms);
  }
  return true;
}

// A predicate for that: what `look` sees has stayed the same for so long.
template <class Look>
auto unchanged(Look look, std::chrono::milliseconds how_long) {
  return [look, how_long, seen = look(), since = clock::now()]() mutable {
    if (auto const now = look(); now != seen) {
      seen = now;
      since = clock::now();
    }
    return clock::now() - since >= how_long;
  };
}

// For what stands around a test: without it there is no use in going on.
inline void must_happen(bool met, char const* what) {
  if (!met) throw std::runtime_error(std::string("never: ") + what);
}

// How long a call took.
class stopwatch {
 public:
  std::chrono::milliseconds passed() const {
    return std::chrono::duration_cast<std::chrono::milliseconds>(clock::now() - start_);
  }

 private:
  clock::time_point start_ = clock::now();
};

}  // namespace latchkey::test
