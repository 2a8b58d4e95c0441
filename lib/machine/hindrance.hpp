#pragma once

#include <latchkey/error.hpp>

#include <string>
#include <string_view>

namespace latchkey::detail {

// Why a server is not to be had.
struct hindrance {
  std::string words;   // of the last attempt; empty while it is to be had
  error_code why;      // empty: no more is known than the words
  bool lasts = false;  // until somebody changes the settings or the server

  void because(std::string_view text, error_code const& code, bool transient) {
    words = text;
    why = code;
    lasts = !transient;
  }
  void may_pass(std::string_view text) { because(text, {}, true); }
  // Said of others: of the server itself more is known, if it has refused.
  void unless_known(std::string_view text) {
    if (!lasts) may_pass(text);
  }
  // The next attempt may find another reason.
  void forget_why() {
    why = {};
    lasts = false;
  }
  void over() { *this = {}; }
};

}  // namespace latchkey::detail
