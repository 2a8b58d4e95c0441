#pragma once

#include <pair/measure.hpp>

#include <string>
#include <vector>

namespace bench {

std::string table_head();
std::string table_line(regime_result const& of);
// What the reader has to know about the machine before he believes the table.
std::string remarks(std::vector<regime_result> const& results);
std::string to_json(std::string const& machine, std::vector<regime_result> const& results);

}  // namespace bench
