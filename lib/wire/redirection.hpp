#pragma once

#include <wire/node_address.hpp>

#include <cstdint>
#include <optional>
#include <string_view>

namespace latchkey::detail {

// A node of a cluster says that another one has what was asked for, and that it has done nothing.
struct redirection {
  bool once = false;  // ASK: this request alone, and the next one is asked here again. Else MOVED: all of the slot
  std::uint16_t slot = 0;
  node_address to{};  // without a host: at the one that has said so
};

// None: it says something else. Redis: clusterRedirectClient.
std::optional<redirection> read_redirection(std::string_view text);

}  // namespace latchkey::detail
