#pragma once

#include <string_view>

namespace latchkey::detail {

// The first word of an error reply: its code. A leading minus and the place inside a script, which servers before
// Redis 7 put in front, are skipped.
std::string_view first_word(std::string_view text) noexcept;

// `text` from its code on.
std::string_view without_place(std::string_view text) noexcept;

// A script has met a key that none of its KEYS names, and that is at another node of a cluster: its slot is on its way.
bool names_key_elsewhere(std::string_view text) noexcept;

// Do these words name a state that passes without anybody changing a setting?
bool passes_by_itself(std::string_view text) noexcept;

}  // namespace latchkey::detail
