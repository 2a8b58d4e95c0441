#pragma once

#include <wire/node_address.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace latchkey::detail {

// Where a client connects to and as whom.
struct target {
  enum class scheme : unsigned char { tcp, unix_socket, embedded, sentinel, cluster };

  scheme how = scheme::tcp;
  std::string host;  // name or address, IPv6 without brackets
  std::uint16_t port = 6379;
  std::string path;      // of a Unix socket
  std::string username;  // empty: as in the config
  std::string password;  // empty: as in the config
  int database = -1;     // -1: as in the config
  bool tls = false;
  std::vector<node_address> seeds{};  // the sentinels, or nodes of the cluster
  std::string master{};               // what they know the server by
  std::string sentinel_username{};    // empty: as in the config
  std::string sentinel_password{};    // empty: as in the config
};

// \throws lock_error bad_uri; the text says what is wrong and at which position, and never shows user info.
target parse_uri(std::string_view text);

}  // namespace latchkey::detail
