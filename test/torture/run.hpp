#pragma once

#include <torture/options.hpp>

#include <string>

namespace latchkey::torture {

// A run with all that belongs to it; gives the exit code of the program.
int run_torture(options const& run);
// Checks what an earlier run left.
int check_again(std::string const& folder);
// Tells it in words.
int show(std::string const& folder);

// Makes a folder for histories.
std::string new_folder();

}  // namespace latchkey::torture
