#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace latchkey::tool {

class session;

// What a user of a kind needs beside what every client does. A test compares it with README.md.
struct kind_rights {
  std::string_view kind;      // as --kind names it
  std::string_view commands;  // with blanks between them
  std::string_view keys;      // NAME stands for the lock's
  std::string_view channels;
};

std::span<kind_rights const> all_rights();
kind_rights const& rights_of(std::string_view kind);

std::vector<std::string> words_of(std::string_view text);
// With this name in place of NAME.
std::string filled_in(std::string word, std::string const& name);
// `+exists ... ~NAME &channel`, as ACL SETUSER takes them; for the sort of server that this one is.
std::string acl_words(session& server, std::string_view kind, std::string const& name);

// The command for sharded channels, if they are used and it is one for channels.
std::string as_sharded(std::string_view word, bool sharded);
bool is_of_messages(std::string_view word);

// Where a lock of this name is told of; empty: this kind sends no messages.
std::string channel_of(kind_rights const& of, std::string const& name);

inline constexpr std::string_view rights_to_run_scripts = "evalsha eval";
inline constexpr std::string_view rights_of_every_client =
    "ping role info client|setname client|info client|kill client|list script|exists subscribe unsubscribe";
inline constexpr std::string_view rights_in_a_cluster = "cluster|nodes asking";

}  // namespace latchkey::tool
