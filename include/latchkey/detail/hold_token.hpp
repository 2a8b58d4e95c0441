#pragma once

#include <latchkey/boost_guard.hpp>
#include <latchkey/export.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace latchkey::detail {

// A hold on its way from one process to another, as a text without blanks: `lk1.` and, in the base64 of URLs without
// padding (RFC 4648, section 5), a JSON object. Members that are not known are not looked at if they are texts, numbers
// or lists of texts; others make it unreadable.
struct hold_token {
  std::vector<std::string> names{};  // one, or those of a lock of several members; any bytes
  std::string kind{};                // `lock`, `fair` and so on: see lib/api/adoption.cpp
  std::string owner{};               // `uuid:number`, as the server shows it; of a semaphore the permit's id
  std::int64_t lease_ms = 0;         // as it was acquired; 0: not said
  std::optional<std::uint64_t> fence{};
};

LATCHKEY_EXPORT std::string write_token(hold_token const& hold);

// Empty: that is none.
LATCHKEY_EXPORT std::optional<hold_token> read_token(std::string_view text);

}  // namespace latchkey::detail
