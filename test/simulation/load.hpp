#pragma once

#include <simulation/clocks.hpp>

#include <algorithm>
#include <array>
#include <cstddef>

namespace latchkey::simulation {

// What a client costs its server: a bucket for each sort, which empties by so much a minute and is not to overflow.
struct load {
  enum class sort : unsigned char { connections, commands, bytes };
  static constexpr std::size_t sorts = 3;
  using amounts = std::array<double, sorts>;

  amounts level{};
  moment seen = 0;

  void pass(moment now, amounts const& per_minute) {
    double const minutes = static_cast<double>(now - seen) / static_cast<double>(ms(60'000));
    for (std::size_t i = 0; i < sorts; ++i) level[i] = std::max(level[i] - per_minute[i] * minutes, 0.0);
    seen = now;
  }
};

}  // namespace latchkey::simulation
