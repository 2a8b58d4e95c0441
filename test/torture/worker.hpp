#pragma once

#include <torture/options.hpp>

namespace latchkey::torture {

// The whole life of a worker process. Gives its exit code.
int run_worker(options const& run);

}  // namespace latchkey::torture
