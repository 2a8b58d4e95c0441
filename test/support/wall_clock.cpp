#include <support/wall_clock.hpp>

#include <support/patience.hpp>

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>

namespace latchkey::test {

namespace {

std::atomic<long> shift{0};

}  // namespace

void shift_wall_clock(std::chrono::seconds by) { shift = by.count(); }

}  // namespace latchkey::test

#ifndef LATCHKEY_TEST_SANITIZED
extern "C" __attribute__((visibility("default"))) int clock_gettime(clockid_t which, timespec* now) noexcept {
  auto const result = static_cast<int>(::syscall(SYS_clock_gettime, which, now));
  if (which == CLOCK_REALTIME) now->tv_sec += latchkey::test::shift.load(std::memory_order_relaxed);
  return result;
}
#endif
