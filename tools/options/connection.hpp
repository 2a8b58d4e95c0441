#pragma once

#include <latchkey/config.hpp>

#include <options/parse.hpp>
#include <string>

namespace latchkey::tool {

// Which server, and as whom.
struct connection {
  std::string uri;
  latchkey::config settings;
  bool by_tls = false;
};

// From options, environment and files. Throws `failure`: `wrong_usage` for a password on the command line,
// `bad_setting` for a file that cannot be read or used, also one for TLS.
connection connection_of(command_line const& line);

// For the first connection, whatever the wait: a server that is there has time to answer, and one that is not is waited
// for no longer than anybody wants to look at a shell.
milliseconds connect_limit(milliseconds wait);

// Overwrites passwords of --uri in the words that everybody may read in /proc.
void hide_passwords(int count, char** words);

}  // namespace latchkey::tool
