#pragma once

#include <base/instant.hpp>

namespace latchkey::detail {

// No delay for small writes, and a peer that is gone without a word is noticed within about `timeout`.
void tune_tcp(int fd, milliseconds timeout) noexcept;

}  // namespace latchkey::detail
