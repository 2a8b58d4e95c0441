#pragma once

#include <latchkey/acquire_options.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>

namespace latchkey::detail {

// What a query's number means to the caller.
template <class Value>
Value answer_as(std::int64_t value);

template <>
inline bool answer_as<bool>(std::int64_t value) {
  return value != 0;
}

template <>
inline std::uint64_t answer_as<std::uint64_t>(std::int64_t value) {
  return static_cast<std::uint64_t>(value);
}

template <>
inline int answer_as<int>(std::int64_t value) {
  return static_cast<int>(std::clamp<std::int64_t>(value, 0, std::numeric_limits<int>::max()));
}

template <>
inline std::optional<milliseconds> answer_as<std::optional<milliseconds>>(std::int64_t value) {
  if (value == -2) return std::nullopt;
  if (value < 0) return milliseconds::max();
  return milliseconds(value);
}

}  // namespace latchkey::detail
