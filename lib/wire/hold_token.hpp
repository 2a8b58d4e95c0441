#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace latchkey::detail {

// A hold on its way from one process to another, as a text without blanks: `lk1.` and, in the base64 of URLs without
// padding (RFC 4648, section 5), a JSON object. Members that are not known are not looked at if they are texts or
// numbers; other members, such as the further names of a joint lock, make it unreadable.
struct hold_token {
  std::string name{};    // any bytes
  std::string kind{};    // `lock`, `fair` and so on: see adoption.cpp
  std::string client{};  // the UUID
  std::uint64_t owner = 0;
  std::uint64_t fence = 0;  // 0: none
};

std::string write_token(hold_token const& hold);

// Empty: that is none.
std::optional<hold_token> read_token(std::string_view text);

}  // namespace latchkey::detail
