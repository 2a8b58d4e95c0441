#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace latchkey::tool {

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
// `+exists ... ~NAME &channel`, as ACL SETUSER takes them.
std::string acl_words(kind_rights const& of, std::string const& name);

// Where a lock of this name is told of; empty: this kind sends no messages.
std::string channel_of(kind_rights const& of, std::string const& name);

inline constexpr std::string_view rights_of_every_client =
    "evalsha eval ping role info client|setname client|info client|kill client|list script|exists subscribe "
    "unsubscribe";

}  // namespace latchkey::tool
