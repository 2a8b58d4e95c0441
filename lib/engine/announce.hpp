#pragma once

#include <string>
#include <string_view>

namespace latchkey::detail {

// What connections are called: words in braces stand for the client's id, and for the process, its machine and its
// program. Bytes that no name may have become underscores.
std::string connection_name(std::string_view pattern, std::string_view id);

// Where it is not given, and what `connection_name` makes of it begins with.
inline constexpr std::string_view announced_name = "latchkey:{id}:{pid}@{host}:{program}";

}  // namespace latchkey::detail
