#pragma once

#include <options/parse.hpp>

namespace latchkey::tool {

// Each is one subcommand: the exit code of the program. They throw `failure`.
int run(command_line const& line);
int status(command_line const& line);
int list(command_line const& line);
int wait(command_line const& line);
int watch(command_line const& line);
int bench(command_line const& line);
int doctor(command_line const& line);

// Locks that are taken and given back by hand, or by a script.
int acquire(command_line const& line);
int extend(command_line const& line);
int held(command_line const& line);
int release(command_line const& line);
int force_unlock(command_line const& line);

}  // namespace latchkey::tool
