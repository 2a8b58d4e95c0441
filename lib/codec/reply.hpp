#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace latchkey::detail {

// One answer of the server, RESP2.
struct reply {
  enum class type : unsigned char { nil, integer, string, status, error, array };

  type kind = type::nil;
  std::int64_t integer = 0;
  std::string text;             // of a string, status or error
  std::vector<reply> elements;  // of an array

  bool is_error() const { return kind == type::error; }
  bool is_integer() const { return kind == type::integer; }
  bool is_array() const { return kind == type::array; }
};

}  // namespace latchkey::detail
