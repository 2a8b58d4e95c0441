#pragma once

#include <codec/reply.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace latchkey::detail {

// The texts and numbers of an answer, one after the other, in one string; nothing for nil.
std::string packed(reply const& answer);
std::vector<std::string> unpacked(std::string_view text);

}  // namespace latchkey::detail
