#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace latchkey::tool {

// RFC 4648, section 5, without padding.
std::string to_base64url(std::string_view bytes);

// Empty: not written by `to_base64url`.
std::optional<std::string> from_base64url(std::string_view text);

}  // namespace latchkey::tool
