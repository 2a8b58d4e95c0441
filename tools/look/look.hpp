#pragma once

#include <options/parse.hpp>

namespace latchkey::tool {

// Each is one subcommand: the exit code of the program. They throw `failure`.
int status(command_line const& line);
int list(command_line const& line);
int wait(command_line const& line);
int watch(command_line const& line);
int bench(command_line const& line);

}  // namespace latchkey::tool
