#pragma once

#include <options/parse.hpp>

namespace latchkey::tool {

// `latchkey run`: the exit code of the program. Throws `failure`.
int run(command_line const& line);

}  // namespace latchkey::tool
