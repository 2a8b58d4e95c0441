#pragma once

#include <base/instant.hpp>

#include <chrono>
#include <cstdint>

namespace latchkey::detail {

// Says when it pays to look for an answer instead of sleeping: only in a run of calls (a caller who asks once in a
// while would burn a core for nothing), only with more than one CPU, and not where answers take longer than the look.
class busy_look {
 public:
  explicit busy_look(std::chrono::microseconds longest);

  // A call begins. How long it may look; zero: sleep at once.
  nanoseconds begin(instant now) noexcept;
  // The call is over. `in_vain`: it looked for the whole time and slept after all.
  void end(instant now, bool looked, bool in_vain) noexcept;

 private:
  nanoseconds longest_;
  instant last_end_{};
  std::uint32_t run_ = 0;      // calls in quick succession
  std::uint32_t vain_ = 0;     // looks in a row that found nothing
  std::uint32_t pause_ = 0;    // calls that are not to look
  std::uint32_t penalty_ = 0;  // length of the latest pause
};

}  // namespace latchkey::detail
