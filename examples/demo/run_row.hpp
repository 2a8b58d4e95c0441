#pragma once

#include "options.hpp"
#include "private_server.hpp"
#include "progress.hpp"
#include "rows.hpp"
#include "signals.hpp"
#include "statistics.hpp"

namespace demo {

/// Runs one row on an empty server.
/// \throws interrupted, std::exception if the demo itself cannot work
row_result run_row(options const& wanted, row const& chosen, private_server const& server, signals const& bell,
                   progress& shown);

/// Lets this process and those it starts have enough open files.
/// \throws std::runtime_error if the system allows too few
void raise_file_limit(options const& wanted);

/// How many connections the server must take.
int connections_needed(options const& wanted);

}  // namespace demo
