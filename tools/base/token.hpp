#pragma once

#include <latchkey/detail/hold_token.hpp>

namespace latchkey::tool {

// What a token says of a hold, as the library writes and reads it.
using token = detail::hold_token;
using detail::read_token;
using detail::write_token;

}  // namespace latchkey::tool
