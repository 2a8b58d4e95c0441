#pragma once

#include <latchkey/error.hpp>

#include <string>
#include <string_view>

namespace latchkey::detail {

// Why a server is not to be had.
struct hindrance {
  std::string words;   // of the last attempt; empty while it is to be had
  error_code lasting;  // what will be so until somebody changes the settings or the server; empty: it may pass

  void because(std::string_view text, error_code const& why, bool transient) {
    words = text;
    lasting = transient ? error_code() : why;
  }
  void may_pass(std::string_view text) { because(text, {}, true); }
  // Said of others: of the server itself more is known, if it has refused.
  void unless_known(std::string_view text) {
    if (!lasting) words = text;
  }
  void over() { *this = {}; }
};

}  // namespace latchkey::detail
