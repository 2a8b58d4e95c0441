#pragma once

#include "rows.hpp"

#include <cstdint>
#include <string_view>

namespace demo {

/// How many commands clients sent in a row, from what `INFO commandstats` says at its end.
///
/// The server counts what scripts call among the rest. Commands that only scripts call here are left out; the recipe's
/// script calls GET once, as requests do, so that one GET is taken off for each EVAL. What the demo itself asks is
/// left out too. The one GET and one SET of each request for the stock are counted, in every row.
std::int64_t commands_of_clients(std::string_view command_statistics, way how);

}  // namespace demo
