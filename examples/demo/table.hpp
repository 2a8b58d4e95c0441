#pragma once

#include "statistics.hpp"

#include <string>
#include <vector>

namespace demo {

/// Lines of cells, set in columns as wide as their widest cell: the first and the last one to the left, the others to
/// the right. No spaces at line ends.
std::string format_table(std::vector<std::vector<std::string>> const& lines);

/// The table of the demo, with its headings.
std::string result_table(std::vector<row_result> const& results);

/// What a reader should know about the columns.
std::string table_notes(std::vector<row_result> const& results);

}  // namespace demo
