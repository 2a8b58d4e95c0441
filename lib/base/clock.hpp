#pragma once

#include <base/instant.hpp>

#include <ctime>

namespace latchkey::detail {

// Only floors 4 and 5 ask for the time.
inline instant boot_now() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return instant(std::chrono::seconds(now.tv_sec) + nanoseconds(now.tv_nsec));
}

}  // namespace latchkey::detail
