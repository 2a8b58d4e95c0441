#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <base/say.hpp>

namespace latchkey::tool {
namespace {

loudness wanted = loudness::normal;

bool plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("_@%+=:,./-").find(c) != std::string_view::npos;
}

bool control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

// As the shell writes what no terminal should be sent: $'\x1b'.
std::string escaped(std::string_view word) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text = "$'";
  for (char const c : word) {
    auto const value = static_cast<unsigned char>(c);
    if (control(c))
      ((text += "\\x") += digits[value / 16]) += digits[value % 16];
    else if (c == '\'' || c == '\\')
      (text += '\\') += c;
    else
      text += c;
  }
  return text + "'";
}

}  // namespace

void set_loudness(loudness value) { wanted = value; }

void complain(std::string_view text) {
  auto line = "latchkey: " + without_passwords(text) + "\n";
  // Of a pipe this says that there is room for PIPE_BUF bytes: what is longer could wait for its reader.
  if (line.size() > 4'096) line = line.substr(0, 4'092) + "...\n";
  pollfd writable{STDERR_FILENO, POLLOUT, 0};
  if (::poll(&writable, 1, 100) != 1 || !(writable.revents & POLLOUT)) return;
  [[maybe_unused]] auto const written = ::write(STDERR_FILENO, line.data(), line.size());
}

void say(std::string_view text) {
  if (wanted != loudness::quiet) complain(text);
}

void explain(std::string_view text) {
  if (wanted == loudness::verbose) complain(text);
}

std::string quoted(std::string_view word) {
  if (std::any_of(word.begin(), word.end(), control)) return escaped(word);
  bool needed = word.empty();
  std::string text = "'";
  for (char const c : word) {
    needed = needed || !plain(c);
    if (c == '\'')
      text += "'\\''";
    else
      text += c;
  }
  return needed ? text + "'" : std::string(word);
}

std::string folded(std::string text) {
  constexpr std::string_view indent = "     ";
  winsize seen{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &seen) != 0 || seen.ws_col < 40) return text;
  for (std::size_t start = 0; text.size() - start > seen.ws_col;) {
    auto const blank = text.rfind(' ', start + seen.ws_col);
    if (blank == text.npos || blank < start + indent.size()) break;  // a word that is longer than the line
    text[blank] = '\n';
    text.insert(blank + 1, indent);
    start = blank + 1;
  }
  return text;
}

std::vector<std::string_view> passwords_in(std::string_view uri) {
  std::vector<std::string_view> found;
  auto const slashes = uri.find("://");
  auto const colon = slashes == uri.npos ? uri.npos : uri.find(':', slashes + 3);
  auto const at = uri.rfind('@');
  if (at != uri.npos && colon < at) found.push_back(uri.substr(colon + 1, at - colon - 1));
  constexpr std::string_view name = "sentinel_password=";
  for (auto begin = uri.find(name); begin != uri.npos; begin = uri.find(name, begin)) {
    begin += name.size();
    found.push_back(uri.substr(begin, uri.find('&', begin) - begin));
  }
  return found;
}

std::string without_passwords(std::string_view text) {
  std::string safe;
  for (;;) {
    auto const word = text.substr(0, text.find_first_of(" \t\r\n"));
    std::size_t said = 0;
    for (auto const secret : passwords_in(word)) {
      auto const begin = static_cast<std::size_t>(secret.data() - word.data());
      if (begin >= said) safe.append(word.substr(said, begin - said)).append("***");
      said = std::max(said, begin + secret.size());
    }
    safe.append(word.substr(said));
    text.remove_prefix(word.size());
    if (text.empty()) return safe;
    safe += text.front();
    text.remove_prefix(1);
  }
}

}  // namespace latchkey::tool
