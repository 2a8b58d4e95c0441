#pragma once

#include <codec/reply.hpp>

#include <cstddef>
#include <string>
#include <string_view>

namespace latchkey::test {

// A reply on one line: `+status`, `-error`, `:1`, `$string`, `nil`, `[:1 nil]`.
std::string show(detail::reply const& what);

// Feeds a new reader piece by piece and shows what comes out, each reply with a semicolon behind it; `!` at the end
// if the bytes are malformed.
std::string read_all(std::string_view bytes, std::size_t piece = std::string_view::npos);

}  // namespace latchkey::test
