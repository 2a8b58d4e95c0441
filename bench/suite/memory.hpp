#pragma once

#include <malloc.h>
#include <sys/resource.h>

#include <filesystem>
#include <string_view>

namespace bench {

// Bytes that are allocated now, with what malloc adds to each piece.
inline double allocated_bytes() {
  auto const now = ::mallinfo2();
  return static_cast<double>(now.uordblks + now.hblkhd);
}

inline double switches_by_itself() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  return static_cast<double>(used.ru_nvcsw);
}

// Timers that this process has open in the kernel.
inline int kernel_timers() {
  int count = 0;
  for (auto const& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    count += std::filesystem::read_symlink(entry.path(), gone).string().find("timerfd") != std::string::npos;
  }
  return count;
}

}  // namespace bench
