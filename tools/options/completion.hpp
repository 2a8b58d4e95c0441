#pragma once

#include <string>
#include <string_view>

namespace latchkey::tool {

// What a shell reads to complete our command lines: bash, zsh or fish. Throws `failure` (`wrong_usage`) for another.
std::string completion_for(std::string_view shell);

// latchkey(1), in the language of man.
std::string manual_text();

}  // namespace latchkey::tool
