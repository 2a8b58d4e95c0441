#pragma once

// Catch2 2.13 and 3.x keep their headers in different places. Tests include this file instead.
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#else
#include <catch2/catch.hpp>
#endif

namespace latchkey::test {

// For values that are awaited: GCC runs a co_await inside Catch's own macros twice. (Clang 14 has no
// std::source_location.)
template <class Got, class Expected>
void check_equal(Got const& got, Expected const& expected, int line = __builtin_LINE()) {
  INFO("asked in line " << line);
  CHECK(got == expected);
}

}  // namespace latchkey::test
