#pragma once

#include "options.hpp"
#include "statistics.hpp"

#include <string>
#include <vector>

namespace demo {

/// What ran and what came out, for programs.
std::string to_json(options const& wanted, std::vector<row_result> const& results);

}  // namespace demo
