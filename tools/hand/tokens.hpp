#pragma once

#include <latchkey/latchkey.hpp>

#include <base/token.hpp>
#include <options/parse.hpp>

namespace latchkey::tool {

// The operand, or LATCHKEY_TOKEN; `-` is the first line of standard input. Throws `failure` (`wrong_usage`): there is
// none.
token token_of(command_line const& line);

// All of its locks, or its permit. False: one at least was not there any more.
bool release_hold(client const& from, token const& hold);

}  // namespace latchkey::tool
