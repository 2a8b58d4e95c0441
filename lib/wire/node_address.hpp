#pragma once

#include <cstdint>
#include <string>

namespace latchkey::detail {

// Where one of several servers listens. Without a host: the server that the URI names.
struct node_address {
  std::string host{};  // name or address, IPv6 without brackets
  std::uint16_t port = 0;

  friend bool operator==(node_address const&, node_address const&) = default;
};

// As texts show it.
inline std::string to_string(node_address const& at) {
  bool const bracketed = at.host.find(':') != std::string::npos;
  return (bracketed ? '[' + at.host + ']' : at.host) + ':' + std::to_string(at.port);
}

}  // namespace latchkey::detail
