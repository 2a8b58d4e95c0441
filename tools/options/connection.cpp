#include <base/environment.hpp>
#include <base/exit_code.hpp>
#include <base/say.hpp>
#include <boost/algorithm/string/predicate.hpp>
#include <cstring>
#include <latchkey/client.hpp>
#include <options/connection.hpp>
#include <string_view>

namespace latchkey::tool {
namespace {

using std::chrono::seconds;

std::string find_uri(command_line const& line) {
  if (auto const given = line.text("uri")) {
    if (!passwords_in(*given).empty())
      throw failure(wrong_usage,
                    "a password on the command line can be read by everybody: give it by LATCHKEY_PASSWORD or "
                    "LATCHKEY_PASSWORD_FILE, or the whole URI by LATCHKEY_URI or LATCHKEY_URI_FILE");
    return *given;
  }
  if (auto const given = variable_of("LATCHKEY_URI")) return *given;
  if (auto const path = variable_of("LATCHKEY_URI_FILE")) return line_of_file(*path, "LATCHKEY_URI_FILE");
  if (auto const folder = variable_of("CREDENTIALS_DIRECTORY")) {
    auto const path = *folder + "/latchkey.uri";
    // systemd sets the variable for other credentials too.
    if (FILE* const there = std::fopen(path.c_str(), "re")) {
      std::fclose(there);
      return line_of_file(path, "CREDENTIALS_DIRECTORY");
    }
    if (errno != ENOENT) throw failure(bad_setting, "CREDENTIALS_DIRECTORY: cannot read " + quoted(path));
  }
  return "redis://127.0.0.1:6379";
}

std::string password_of_file(std::string const& path) {
  auto made = line_of_file(path, "LATCHKEY_PASSWORD_FILE");
  // Without one the server would be asked as another user, or refuse everything.
  if (made.empty())
    throw failure(bad_setting, "LATCHKEY_PASSWORD_FILE: the first line of " + quoted(path) + " is empty");
  return made;
}

// The option, else the variable.
std::string find_file(command_line const& line, std::string const& option, char const* variable) {
  if (auto const given = line.text(option)) return *given;
  return variable_of(variable).value_or("");
}

void set_tls(command_line const& line, connection& made) {
  if (!made.by_tls) {
    for (auto const* option : {"cacert", "cert", "key"})
      if (line.has(option)) throw failure(wrong_usage, std::string("--") + option + " needs a URI with rediss://");
    return;
  }
  auto& tls = made.settings.tls;
  tls.ca_file = find_file(line, "cacert", "LATCHKEY_CACERT");
  tls.certificate_file = find_file(line, "cert", "LATCHKEY_CERT");
  tls.private_key_file = find_file(line, "key", "LATCHKEY_KEY");
  try {
    client const reads_the_files(made.uri, made.settings);
  } catch (lock_error const& error) {
    throw failure(bad_setting, "cannot use TLS: " + error.server_text());
  }
}

}  // namespace

connection connection_of(command_line const& line) {
  connection made{find_uri(line), {}};
  if (boost::algorithm::istarts_with(made.uri, "embedded:"))
    throw failure(bad_setting, "embedded: is a server of one process alone");
  made.by_tls = boost::algorithm::istarts_with(made.uri, "rediss");
  made.settings.username = variable_of("LATCHKEY_USERNAME").value_or("");
  if (auto const given = variable_of("LATCHKEY_PASSWORD"))
    made.settings.password = *given;
  else if (auto const path = variable_of("LATCHKEY_PASSWORD_FILE"))
    made.settings.password = password_of_file(*path);
  made.settings.connect_timeout = seconds(5);
  set_tls(line, made);
  return made;
}

milliseconds connect_limit(milliseconds wait) { return std::clamp<milliseconds>(wait, seconds(2), seconds(5)); }

void hide_passwords(int count, char** words) {
  for (int i = 1; i < count; ++i) {
    auto const word = std::string_view(words[i]);
    bool const is_uri = word.starts_with("--uri=") || std::string_view(words[i - 1]) == "--uri";
    if (!is_uri) continue;
    for (auto const secret : passwords_in(word))
      std::memset(words[i] + (secret.data() - word.data()), '*', secret.size());
  }
}

}  // namespace latchkey::tool
