#pragma once

#include <options/parse.hpp>

namespace latchkey::tool {

// Locks that are taken and given back by hand, or by a script. Each is one subcommand: the exit code of the program.
// They throw `failure`.
int acquire(command_line const& line);
int extend(command_line const& line);
int held(command_line const& line);
int release(command_line const& line);
int force_unlock(command_line const& line);

}  // namespace latchkey::tool
