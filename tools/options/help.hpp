#pragma once

#include <options/table.hpp>

#include <string>

namespace latchkey::tool {

// Of one subcommand, or, with null, of the program.
std::string help_text(subcommand const* which);

std::string version_text();

// What a shell reads to complete our command lines: bash, zsh or fish. Throws `failure` (`wrong_usage`) for another.
std::string completion_for(std::string_view shell);

// latchkey(1), in the language of man.
std::string manual_text();

}  // namespace latchkey::tool
