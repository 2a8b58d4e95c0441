#include <boost/version.hpp>
#include <hiredis/hiredis.h>
#include <latchkey/version.hpp>

#include <algorithm>
#include <options/help.hpp>

namespace latchkey::tool {
namespace {

constexpr std::size_t width = 79;
constexpr std::size_t column = 26;

// `text` broken between words, each line behind `indent` blanks; the first stands behind what is on its line already.
std::string wrapped(std::string_view text, std::size_t indent, std::size_t at) {
  std::string made;
  bool blank = false;
  while (!text.empty()) {
    auto const end = std::min(text.find_first_of(" \n"), text.size());
    if (blank && at + 1 + end > width) {
      made += '\n' + std::string(indent, ' ');
      at = indent;
    } else if (blank) {
      made += ' ';
      ++at;
    }
    made += text.substr(0, end);
    at += end;
    blank = end < text.size() && text[end] == ' ';
    if (end == text.size()) break;
    if (!blank) {
      made += '\n' + std::string(indent, ' ');
      at = indent;
    }
    text.remove_prefix(end + 1);
  }
  return made + "\n";
}

std::string row(std::string const& left, std::string_view right) {
  auto line = "  " + left;
  if (line.size() + 2 > column)
    line += '\n' + std::string(column, ' ');
  else
    line.resize(column, ' ');
  return line + wrapped(right, column, column);
}

std::string row(option const& one) {
  auto left = one.letter != 0 ? '-' + std::string(1, one.letter) + ", " : std::string("    ");
  left += "--" + std::string(one.name);
  if (!one.value.empty()) left += ' ' + std::string(one.value);
  auto right = std::string(one.meaning);
  if (!one.choices.empty()) {
    right += ": ";
    for (char const c : one.choices) right += c == '|' ? std::string(", ") : std::string(1, c);
  }
  return row(left, right);
}

std::string rows(std::span<option const> options) {
  std::string text;
  for (auto const& one : options) text += row(one);
  return text;
}

std::string whole_help() {
  std::string text = "Usage: latchkey [options] SUBCOMMAND ...\n\nDistributed locks on Redis, for the shell.\n\n";
  text += "Subcommands (latchkey SUBCOMMAND --help says more):\n";
  for (auto const& one : subcommands()) text += row(std::string(one.name), one.meaning);
  text += "\nOptions:\n" + rows(common_options());
  text += "\nDurations are 250ms, 30s, 1m30s, 2h, 1d or 0.5s; a number is seconds.\n\nEnvironment:\n";
  for (auto const& one : variables()) text += row(std::string(one.name), one.meaning);
  text += "\nExit codes:\n";
  for (auto const& one : exit_codes()) text += row(std::string(one.code), one.meaning);
  return text;
}

}  // namespace

std::string help_text(subcommand const* which) {
  if (!which) return whole_help();
  auto text = "Usage: latchkey " + std::string(which->name) + " [options] " + std::string(which->operands) + "\n\n";
  text += wrapped(which->text, 0, 0);
  if (!which->options.empty()) text += "\nOptions:\n" + rows(which->options);
  return text + "\nCommon options:\n" + rows(common_options());
}

std::string version_text() {
  return "latchkey " LATCHKEY_VERSION " (Boost " + std::to_string(BOOST_VERSION / 100'000) + '.' +
         std::to_string(BOOST_VERSION / 100 % 1'000) + '.' + std::to_string(BOOST_VERSION % 100) + ", hiredis " +
         std::to_string(HIREDIS_MAJOR) + '.' + std::to_string(HIREDIS_MINOR) + '.' + std::to_string(HIREDIS_PATCH) +
         ")\n";
}

}  // namespace latchkey::tool
