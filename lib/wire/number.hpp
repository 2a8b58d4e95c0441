#pragma once

#include <charconv>
#include <string_view>
#include <system_error>

namespace latchkey::detail {

// All of the text is the number. False: it is not, or does not fit, and `value` may be anything.
template <class Number>
bool read_number(std::string_view text, Number& value) {
  auto const end = text.data() + text.size();
  auto const parsed = std::from_chars(text.data(), end, value);
  return parsed.ec == std::errc() && parsed.ptr == end;
}

}  // namespace latchkey::detail
