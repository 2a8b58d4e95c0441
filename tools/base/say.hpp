#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace latchkey::tool {

enum class loudness { quiet, normal, verbose };

// What -q and -v ask for. Set once, before there are threads.
void set_loudness(loudness wanted);

// A line on stderr behind `latchkey: `, in one write; passwords in URIs are masked. A reader who does not read for 100
// ms costs the line, not the lease.
void complain(std::string_view text);  // also with -q
void say(std::string_view text);       // not with -q
void explain(std::string_view text);   // with -v only

// Quoted for the shell where it is needed: `'a b'`.
std::string quoted(std::string_view word);

// For a line on stdout: on a terminal it is parted between words where the terminal would part it anywhere, and goes on
// behind five blanks.
std::string folded(std::string text);

// Where passwords stand in a URI: between a colon and the last @, also where that is no valid URI, since a password
// with a slash or an @ in it is one, too; and behind `sentinel_password=`.
std::vector<std::string_view> passwords_in(std::string_view uri);

// With `***` in place of those of every URI in it.
std::string without_passwords(std::string_view text);

}  // namespace latchkey::tool
