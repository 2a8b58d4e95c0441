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

namespace {

// Those of sentinels.
std::string without_parameters(std::string text) {
  constexpr std::string_view name = "sentinel_password=";
  for (auto begin = text.find(name); begin != text.npos; begin = text.find(name, begin)) {
    begin += name.size();
    auto const end = std::min(text.find_first_of("& \t\r\n\"'", begin), text.size());
    text.replace(begin, end - begin, "***");
  }
  return text;
}

}  // namespace

std::string without_passwords(std::string_view text) {
  std::string safe;
  for (;;) {
    auto const slashes = text.find("://");
    if (slashes == text.npos) return without_parameters(safe.append(text));
    safe.append(text.substr(0, slashes + 3));
    text.remove_prefix(slashes + 3);
    // A password with a slash or an @ in it is no valid URI, and yet a password: the last @ of the word counts.
    auto const word = text.substr(0, text.find_first_of(" \t\r\n"));
    auto const at = word.rfind('@');
    auto const colon = word.find(':');
    if (at == word.npos || colon > at) continue;
    safe.append(text.substr(0, colon + 1)).append("***");
    text.remove_prefix(at);
  }
}

}  // namespace latchkey::tool
