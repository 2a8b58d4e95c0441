#pragma once

#include <cstdint>

namespace latchkey::detail {

// A number that grows in the child of every fork(). A child must touch neither the mutexes nor the sockets nor the
// timers that it inherited: another thread may have held the mutex, and the sockets are shared with the parent.
class fork_guard {
 public:
  fork_guard();

  // Was this object made by an ancestor of the calling process?
  bool forked() const noexcept;

 private:
  std::uint32_t generation_;
};

}  // namespace latchkey::detail
