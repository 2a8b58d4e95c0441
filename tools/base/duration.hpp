#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace latchkey::tool {

using std::chrono::milliseconds;

constexpr milliseconds forever = milliseconds::max();

// `250ms`, `30s`, `1m30s`, `2h`, `1d`, `0.5s`, or a number of seconds; `forever`. Rounded up to a millisecond. Empty:
// that is no duration, or one of more than a thousand years.
std::optional<milliseconds> read_duration(std::string_view text);

// For people: `250 ms`, `17 s`, `2 min`, `3 h`, `for ever`.
std::string in_words(milliseconds length);

}  // namespace latchkey::tool
