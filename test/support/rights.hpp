#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace latchkey::test {

// What the user of a client may have to be allowed, for one kind. NAME stands for the lock's name, or for a pattern of
// names. README.md shows this table; scripts/update-docs copies it.
struct kind_rights {
  std::string_view kind;
  std::string_view keys;      // as after ~
  std::string_view channels;  // as after &
  std::string_view commands;  // as after +
};

// The first row is of every client.
std::vector<kind_rights> const& all_rights();
// As ACL SETUSER takes them: those of every client, and those of this kind for these names.
std::vector<std::string> rights_of(std::string_view kind, std::string const& names);

}  // namespace latchkey::test
