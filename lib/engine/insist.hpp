#pragma once

#include <chrono>
#include <exception>
#include <new>
#include <thread>

namespace latchkey::detail {

// Does what must not be left undone, such as telling a caller that his call is over. Where memory is short it tries
// again for a second; a program that has none for so long ends.
template <class F>
void insist(F const& what) noexcept {
  constexpr int most = 1'000;
  for (int i = 0; i < most; ++i) try {
      return what();
    } catch (std::bad_alloc const&) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  std::terminate();
}

}  // namespace latchkey::detail
