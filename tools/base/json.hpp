#pragma once

#include <boost/json/value.hpp>

#include <string>

namespace latchkey::tool {

// In one line. Names may have any bytes, and JSON has UTF-8 alone: what is none becomes U+FFFD.
std::string json_text(boost::json::value const& made);

}  // namespace latchkey::tool
