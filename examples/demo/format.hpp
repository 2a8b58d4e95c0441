#pragma once

#include <string>

namespace demo {

/// With this many digits after the point.
std::string fixed(double value, int digits);
/// Two or three digits that count: 0.42, 4.2, 42, 421.
std::string short_number(double value);
/// A wait: with one digit after the point below 10 ms, in whole milliseconds from there.
std::string milliseconds_text(double ms);

}  // namespace demo
