#include <fuzz/input.hpp>
#include <latchkey/error.hpp>
#include <wire/uri.hpp>

#include <string>

// Any text as a URI: it can be used, or it is refused in words that do not depend on the user's name and password.

namespace latchkey::fuzz {
namespace {

// What is said about the text; empty if it can be used.
std::string problem_of(std::string_view text) try {
  auto const made = detail::parse_uri(text);
  using scheme = detail::target::scheme;
  must(made.how != scheme::tcp || (!made.host.empty() && made.port != 0), "who is reached by TCP has host and port");
  must(made.how != scheme::unix_socket || (made.path.size() > 1 && made.path.size() <= 107), "a socket has a path");
  must(made.database >= -1, "a database has a number");
  return {};
} catch (lock_error const& problem) {
  must(problem.code() == errc::bad_uri, "what cannot be used is a bad URI");
  return problem.what();
}

// The same text with other letters in the user info; none of them is a hexadecimal digit.
std::string with_other_secrets(std::string text) {
  auto const begin = text.find("//"), end = text.rfind('@');
  if (begin == std::string::npos || end == std::string::npos) return text;
  for (std::size_t i = begin; i < end; ++i)
    if (text[i] >= 'g' && text[i] <= 'z') text[i] = text[i] == 'z' ? 'g' : static_cast<char>(text[i] + 1);
  return text;
}

}  // namespace
}  // namespace latchkey::fuzz

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* bytes, std::size_t size) {
  using namespace latchkey::fuzz;
  std::string const text(reinterpret_cast<char const*>(bytes), size);
  must(problem_of(text) == problem_of(with_other_secrets(text)), "no word about a URI tells of its secrets");
  return 0;
}
