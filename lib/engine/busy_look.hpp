#pragma once

#include <base/instant.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <utility>

namespace latchkey::detail {

// Says when it pays to look for an answer instead of sleeping: only in a run of calls (a caller who asks once in a
// while would burn a core for nothing), not where answers take longer than the look, and not where others want the CPU:
// who looks has used up his time slice when the answer comes, and waits for those of the others.
class busy_look {
 public:
  // Zero: it never does.
  explicit busy_look(nanoseconds longest) : longest_(longest) {}

  // A call begins, which may take until `end`. Until when it may look; `now`: it is to sleep at once.
  instant begin(instant now, instant end) noexcept;
  // It has looked for the whole time, and sleeps after all.
  void in_vain(instant now) noexcept;
  // The call is over.
  void end(instant now) noexcept;

 private:
  static constexpr nanoseconds quick = std::chrono::microseconds(200);
  static constexpr std::uint32_t calls_of_a_run = 4;
  static constexpr std::uint32_t vain_looks = 4;
  static constexpr std::uint32_t first_vain_pause = 64;
  static constexpr std::uint32_t longest_vain_pause = 4096;
  // A look that ends so late was not on a CPU.
  static constexpr nanoseconds preempted = std::chrono::microseconds(500);
  // A slice of another takes milliseconds: of a thousand calls one may pay that, of a hundred none.
  static constexpr std::uint32_t first_preempted_pause = 4096;
  static constexpr std::uint32_t longest_preempted_pause = 65536;
  static constexpr std::uint32_t calm_looks = 2048;  // after so many the next is by chance, and counts as the first

  void looked(instant now, bool found) noexcept;
  // Looks are left out for so many calls, twice as many each time.
  void pause(std::uint32_t& penalty, std::uint32_t first, std::uint32_t longest) noexcept;

  nanoseconds longest_;
  instant last_end_{};
  instant look_end_{};                   // of the look that is under way; zero: none
  std::uint32_t run_ = 0;                // calls in quick succession
  std::uint32_t pause_ = 0;              // calls that are not to look
  std::uint32_t vain_ = 0;               // looks in a row that found nothing
  std::uint32_t vain_penalty_ = 0;       // length of the latest pause after those
  std::uint32_t calm_ = 0;               // looks since one was preempted
  std::uint32_t preempted_penalty_ = 0;  // length of the latest pause after that
};

inline instant busy_look::begin(instant now, instant end) noexcept {
  look_end_ = {};
  run_ = now - last_end_ < quick ? std::min(run_ + 1, calls_of_a_run) : 0;
  if (run_ < calls_of_a_run || longest_ == nanoseconds::zero() || end <= now) return now;
  if (pause_ > 0) {
    --pause_;
    return now;
  }
  return look_end_ = std::min(end, after(now, longest_));
}

inline void busy_look::in_vain(instant now) noexcept { looked(now, false); }

inline void busy_look::end(instant now) noexcept {
  last_end_ = now;
  if (look_end_ != instant{}) looked(now, true);
}

inline void busy_look::looked(instant now, bool found) noexcept {
  if (now - std::exchange(look_end_, {}) > preempted) {
    calm_ = 0;
    return pause(preempted_penalty_, first_preempted_pause, longest_preempted_pause);
  }
  if (++calm_ >= calm_looks) calm_ = preempted_penalty_ = 0;
  if (found) {
    vain_ = 0;
    vain_penalty_ /= 2;
  } else if (++vain_ >= vain_looks) {
    vain_ = 0;
    pause(vain_penalty_, first_vain_pause, longest_vain_pause);
  }
}

inline void busy_look::pause(std::uint32_t& penalty, std::uint32_t first, std::uint32_t longest) noexcept {
  penalty = std::clamp(penalty * 2, first, longest);
  pause_ = penalty;
}

}  // namespace latchkey::detail
