#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace latchkey::simulation {

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
