#pragma once

#include <chrono>

namespace latchkey::test {

// Moves the wall clock as this process sees it: the test program puts a clock_gettime of its own before the
// system's. Not in programs built with a sanitizer, which has one of its own.
void shift_wall_clock(std::chrono::seconds by);

}  // namespace latchkey::test
