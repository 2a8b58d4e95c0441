#pragma once

#include <support/catch.hpp>

namespace latchkey::test {

// For values that are awaited: GCC runs a co_await inside Catch's own macros twice. (Clang 14 has no
// std::source_location.)
template <class Got, class Expected>
void check_equal(Got const& got, Expected const& expected, int line = __builtin_LINE()) {
  INFO("asked in line " << line);
  CHECK(got == expected);
}

}  // namespace latchkey::test
