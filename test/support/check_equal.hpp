#pragma once

#include <support/catch.hpp>

#include <source_location>

namespace latchkey::test {

// For values that are awaited: GCC runs a co_await inside Catch's own macros twice.
template <class Got, class Expected>
void check_equal(Got const& got, Expected const& expected,
                 std::source_location where = std::source_location::current()) {
  INFO("asked in line " << where.line());
  CHECK(got == expected);
}

}  // namespace latchkey::test
