#pragma once

#include <latchkey/error.hpp>
#include <latchkey/event.hpp>

#include <base/exit_code.hpp>
#include <string>
#include <string_view>

namespace latchkey::tool {

// The exit code of an error of the library; `words` are the server's, where it said any.
int code_of(error_code const& error, std::string_view words);

// `what`: what was tried, such as "cannot release 'backup'".
failure failure_of(std::string_view what, error_code const& error, std::string_view words);
failure failure_of(std::string_view what, lock_error const& error);

// Why the server is not to be had, in the words of this event; empty: it does not tell.
std::string_view refusal_in(event const& what);

}  // namespace latchkey::tool
