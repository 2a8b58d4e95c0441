#pragma once

#include <options/parse.hpp>

namespace latchkey::tool {

// `latchkey doctor`: the exit code of the program. Throws `failure`.
int doctor(command_line const& line);

}  // namespace latchkey::tool
