#include <base/environment.hpp>
#include <base/exit_code.hpp>
#include <base/say.hpp>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>

namespace latchkey::tool {

std::optional<std::string> variable_of(char const* name) {
  char const* const value = std::getenv(name);
  if (!value || !*value) return {};
  return value;
}

std::string line_of_file(std::string const& path, std::string const& what) {
  constexpr std::streamsize most = 64 * 1'024;
  std::string text(most + 1, '\0');
  std::ifstream file(path, std::ios::binary);
  if (!file) throw failure(bad_setting, what + ": cannot read " + quoted(path) + ": " + std::strerror(errno));
  file.read(text.data(), most + 1);
  if (file.bad()) throw failure(bad_setting, what + ": cannot read " + quoted(path));
  if (file.gcount() > most) throw failure(bad_setting, what + ": " + quoted(path) + " is too long");
  text.resize(static_cast<std::size_t>(file.gcount()));
  return text.substr(0, text.find_first_of("\r\n"));
}

}  // namespace latchkey::tool
