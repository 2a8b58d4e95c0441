#pragma once

#include <latchkey/error.hpp>
#include <wire/item.hpp>

#include <string_view>

namespace latchkey::detail {

// What the words of an error reply mean for whoever asked.
struct server_error {
  enum class ran : unsigned char {
    no,       // nothing was executed: the same may be sent again
    unknown,  // a script may have run in part
  };
  errc code = errc::server_error;
  ran executed = ran::unknown;
  bool transient = false;  // worth another try without anybody changing a setting
  bool no_script = false;  // NOSCRIPT: send the text
  bool reconnect = false;  // this connection leads to the wrong place: READONLY, MASTERDOWN
};

// Looks at the first word, and at known phrases: inside scripts Redis reports some refusals as plain ERR.
server_error classify(std::string_view text);

// What a caller is told of an answer that did not do what he asked for.
errc error_of(outcome const& answer);
std::string_view words_of(outcome const& answer);

}  // namespace latchkey::detail
