#pragma once

#include <string>

namespace bench {

// A string as JSON writes it; control characters become spaces.
std::string quoted(std::string const& text);

}  // namespace bench
