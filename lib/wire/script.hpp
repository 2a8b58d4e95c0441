#pragma once

#include <latchkey/export.hpp>

#include <string>
#include <string_view>

namespace latchkey::detail {

// A Lua script and its SHA-1, by which EVALSHA calls it.
class LATCHKEY_EXPORT script {  // for latchkey::testing, beside a shared library
 public:
  explicit script(std::string_view text, bool publishes = false);

  std::string_view text() const { return text_; }
  std::string_view sha() const { return sha_; }
  // The last argument of a call, behind those of all items, is the command to publish with: see publisher.
  bool publishes() const { return publishes_; }

 private:
  std::string text_;
  std::string sha_;  // 40 hexadecimal digits, lower case
  bool publishes_;
};

// SPUBLISH reaches who subscribed at the node of the channel's slot, PUBLISH who subscribed anywhere.
constexpr std::string_view publisher(bool sharded) { return sharded ? "spublish" : "publish"; }

// Asks whether scripts run at all: has no keys and changes nothing.
script const& no_keys_script();

}  // namespace latchkey::detail
