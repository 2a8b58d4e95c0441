#pragma once

#include <options/table.hpp>

#include <string>

namespace latchkey::tool {

// Of one subcommand, or, with null, of the program.
std::string help_text(subcommand const* which);

std::string version_text();

}  // namespace latchkey::tool
