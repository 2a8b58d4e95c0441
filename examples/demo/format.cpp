#include "format.hpp"

#include <array>
#include <charconv>

namespace demo {

std::string fixed(double value, int digits) {
  std::array<char, 64> buffer;
  auto const [end, error] =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::fixed, digits);
  return error == std::errc{} ? std::string(buffer.data(), end) : std::string("?");
}

std::string short_number(double value) { return fixed(value, value < 0.995 ? 2 : value < 9.95 ? 1 : 0); }

std::string milliseconds_text(double ms) { return fixed(ms, ms < 9.95 ? 1 : 0); }

}  // namespace demo
