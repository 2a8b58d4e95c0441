#include <common/regimes.hpp>

#include <algorithm>
#include <array>

namespace bench {
namespace {

using namespace std::chrono_literals;

constexpr std::array<regime, 6> regimes{{
    {"back-to-back", "one pair after the other", 0us, false, 300},
    {"0.2ms", "a pair every 0.2 ms", 200us, false, 300},
    {"2ms", "a pair every 2 ms", 2ms, false, 100},
    {"20ms", "a pair every 20 ms", 20ms, false, 25},
    {"back-to-back-busy", "one pair after the other, all cores busy", 0us, true, 300},
    {"2ms-busy", "a pair every 2 ms, all cores busy", 2ms, true, 100},
}};

}  // namespace

std::span<regime const> all_regimes() { return regimes; }

regime const* find_regime(std::string_view name) {
  auto const found = std::find_if(regimes.begin(), regimes.end(), [&](auto const& one) { return one.name == name; });
  return found == regimes.end() ? nullptr : &*found;
}

}  // namespace bench
