#pragma once

#include <cstdint>

namespace latchkey::test {

// How often this program, on any thread, has called into the kernel to send, receive, wait for sockets, or arm a timer.
// Counted only in programs that system_calls.cpp is linked into: it stands before the C library's functions.
// Threads that sleep on a futex are not counted here; they show as context switches.
std::uint64_t system_calls() noexcept;

}  // namespace latchkey::test
