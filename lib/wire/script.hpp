#pragma once

#include <string>
#include <string_view>

namespace latchkey::detail {

// A Lua script and its SHA-1, by which EVALSHA calls it.
class script {
 public:
  explicit script(std::string_view text);

  std::string_view text() const { return text_; }
  std::string_view sha() const { return sha_; }

 private:
  std::string text_;
  std::string sha_;  // 40 hexadecimal digits, lower case
};

// Asks whether scripts run at all: has no keys and changes nothing.
script const& no_keys_script();

}  // namespace latchkey::detail
