#pragma once

#include <latchkey/boost_guard.hpp>

// The library is built with hidden visibility; what programs may call is marked with this.
#define LATCHKEY_EXPORT __attribute__((visibility("default")))
