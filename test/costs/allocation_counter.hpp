#pragma once

#include <cstdint>

namespace latchkey::test {

// How often this thread has called malloc, calloc or realloc, by way of operator new or from any library. Counted only
// in programs that allocation_counter.cpp is linked into: it replaces these functions.
std::uint64_t allocations_of_this_thread() noexcept;

}  // namespace latchkey::test
