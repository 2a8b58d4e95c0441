#pragma once

#include "statistics.hpp"

#include <string>
#include <vector>

namespace demo {

/// Did this row do what it must? A recipe or no lock may oversell and be cut off; a latchkey row may not, nor may it
/// lose or hang anything. Errors that nobody planned are wrong in every row.
bool row_is_good(row_result const& result);

/// One line: what the rows show.
std::string conclusion(std::vector<row_result> const& results);

}  // namespace demo
