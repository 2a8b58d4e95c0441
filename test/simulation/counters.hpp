#pragma once

#include <simulation/clocks.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

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

// One number for each step of a run, of everything that clients did up to then (FNV-1a).
class step_numbers {
 public:
  void begin_step() {
    if (begun_) made_.push_back(static_cast<std::uint32_t>(state_ ^ (state_ >> 32)));
    begun_ = true;
  }
  void add(std::uint64_t number) {
    for (int i = 0; i < 8; ++i) byte(static_cast<unsigned char>(number >> (8 * i)));
  }
  void add(std::string_view bytes) {
    add(bytes.size());
    for (char const c : bytes) byte(static_cast<unsigned char>(c));
  }
  // The last step is over, too.
  std::vector<std::uint32_t> finished() {
    begin_step();
    begun_ = false;
    return made_;
  }

 private:
  void byte(unsigned char c) { state_ = (state_ ^ c) * 0x100000001b3u; }

  std::uint64_t state_ = 0xcbf29ce484222325u;
  bool begun_ = false;
  std::vector<std::uint32_t> made_;
};

}  // namespace latchkey::simulation
