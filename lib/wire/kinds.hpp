#pragma once

#include <wire/kind.hpp>

namespace latchkey::detail {

// The kinds beside the reentrant lock. None is ever destroyed.

kind const& non_reentrant_kind();  // Redisson's RedissonNonReentrantLock

}  // namespace latchkey::detail
