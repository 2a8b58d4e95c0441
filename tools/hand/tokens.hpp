#pragma once

#include <latchkey/detail/hold_token.hpp>
#include <latchkey/latchkey.hpp>

#include <options/parse.hpp>

namespace latchkey::tool {

// What a token says of a hold, as the library writes and reads it.
using token = detail::hold_token;
using detail::read_token;
using detail::write_token;

// The operand, or LATCHKEY_TOKEN; `-` is the first line of standard input. Throws `failure` (`wrong_usage`): there is
// none.
token token_of(command_line const& line);

// All of its locks, or its permit. False: one at least was not there any more.
bool release_hold(client const& from, token const& hold);

}  // namespace latchkey::tool
