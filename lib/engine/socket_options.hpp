#pragma once

#include <base/instant.hpp>

namespace latchkey::detail {

// A socket that no program inherits which is started meanwhile: a flag set afterwards comes too late for a fork in
// another thread. -1: errno says why.
int new_socket(int family, int type, int protocol = 0) noexcept;

// No delay for small writes, and a peer that is gone without a word is noticed within about `timeout`.
void tune_tcp(int fd, milliseconds timeout) noexcept;

}  // namespace latchkey::detail
