#include <engine/busy_look.hpp>

#include <sched.h>

#include <algorithm>

namespace latchkey::detail {

namespace {

constexpr nanoseconds quick = std::chrono::microseconds(200);
constexpr std::uint32_t calls_of_a_run = 4;
constexpr std::uint32_t vain_looks = 4;
constexpr std::uint32_t first_pause = 64;
constexpr std::uint32_t longest_pause = 4096;

bool several_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return ::sched_getaffinity(0, sizeof set, &set) != 0 || CPU_COUNT(&set) > 1;
}

}  // namespace

busy_look::busy_look(std::chrono::microseconds longest)
    : longest_(longest.count() > 0 && several_cpus() ? nanoseconds(longest) : nanoseconds::zero()) {}

nanoseconds busy_look::begin(instant now) noexcept {
  run_ = now - last_end_ < quick ? std::min(run_ + 1, calls_of_a_run) : 0;
  if (run_ < calls_of_a_run) return nanoseconds::zero();
  if (pause_ > 0) {
    --pause_;
    return nanoseconds::zero();
  }
  return longest_;
}

void busy_look::end(instant now, bool looked, bool in_vain) noexcept {
  last_end_ = now;
  if (!looked) return;
  if (!in_vain) {
    vain_ = 0;
    penalty_ /= 2;
    return;
  }
  if (++vain_ < vain_looks) return;
  vain_ = 0;
  penalty_ = std::clamp(penalty_ * 2, first_pause, longest_pause);
  pause_ = penalty_;
}

}  // namespace latchkey::detail
