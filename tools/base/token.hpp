#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace latchkey::tool {

// What a token says of a hold: `lk1.` and JSON in the base64 of URLs, without padding.
struct token {
  std::vector<std::string> names;  // one, or those of a multi lock
  std::string kind;
  std::string owner;  // `uuid:number`, as on the server; of a semaphore the permit's id
  std::int64_t lease_ms = 0;
  std::optional<std::uint64_t> fence;
};

std::string write_token(token const& hold);

// Empty: that is none.
std::optional<token> read_token(std::string_view text);

}  // namespace latchkey::tool
