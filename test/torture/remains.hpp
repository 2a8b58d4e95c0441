#pragma once

#include <torture/stage.hpp>

#include <string>
#include <vector>

namespace latchkey::torture {

// What is still on the servers when all workers have ended and the longest lease is over, and should not be.
std::vector<std::string> find_remains(stage& on);

}  // namespace latchkey::torture
