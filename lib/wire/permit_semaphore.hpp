#pragma once

#include <optional>
#include <string>
#include <string_view>

// Ids of permits: 16 bytes on the server, 32 hexadecimal digits for users.
namespace latchkey::detail {

std::string permit_id_text(std::string_view bytes);
// Empty: it is no id.
std::optional<std::string> permit_id_bytes(std::string_view text);

}  // namespace latchkey::detail
