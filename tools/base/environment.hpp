#pragma once

#include <optional>
#include <string>

namespace latchkey::tool {

// Of the environment; empty values count as none.
std::optional<std::string> variable_of(char const* name);

// The first line of a file, such as a secret. Throws `failure` (`bad_setting`): not readable, or more than 64 KiB.
std::string line_of_file(std::string const& path, std::string const& what);

}  // namespace latchkey::tool
