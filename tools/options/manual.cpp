#include <latchkey/version.hpp>

#include <options/help.hpp>
#include <options/table.hpp>

namespace latchkey::tool {
namespace {

// A dash that is typed, not a hyphen; and nothing that the language would take for its own.
std::string plain(std::string_view text) {
  std::string safe;
  bool first = true;
  for (char const c : text) {
    if (first && (c == '.' || c == '\'')) safe += "\\&";
    if (c == '-' || c == '\\')
      safe += c == '-' ? "\\-" : "\\e";
    else if (c == '\n')
      safe += "\n.PP\n";
    else
      safe += c;
    first = c == '\n';
  }
  return safe;
}

std::string entry(std::string const& left, std::string_view right) {
  return ".TP\n" + left + '\n' + plain(right) + '\n';
}

std::string entry(option const& one) {
  auto left = "\\fB" + plain("--" + std::string(one.name)) + "\\fR";
  if (one.letter != 0) left = "\\fB\\-" + std::string(1, one.letter) + "\\fR, " + left;
  if (!one.value.empty()) left += " \\fI" + plain(one.value) + "\\fR";
  auto right = std::string(one.meaning);
  if (!one.choices.empty()) {
    right += ": ";
    for (char const c : one.choices) right += c == '|' ? std::string(", ") : std::string(1, c);
  }
  return entry(left, right);
}

}  // namespace

std::string manual_text() {
  std::string text =
      ".TH LATCHKEY 1 \"\" \"latchkey " LATCHKEY_VERSION
      "\" \"User Commands\"\n.SH NAME\nlatchkey \\- distributed locks "
      "on Redis, for the shell\n.SH SYNOPSIS\n.B latchkey\n[\\fIoptions\\fR] \\fISUBCOMMAND\\fR ...\n.SH SUBCOMMANDS\n";
  for (auto const& one : subcommands()) {
    text += ".SS latchkey " + plain(one.name) + " [options] " + plain(one.operands) + '\n' + plain(one.text) + '\n';
    for (auto const& each : one.options) text += entry(each);
  }
  text += ".SH OPTIONS\nOf every subcommand, and before its name.\n";
  for (auto const& one : common_options()) text += entry(one);
  text += ".PP\nDurations are 250ms, 30s, 1m30s, 2h, 1d or 0.5s; a number is seconds.\n.SH ENVIRONMENT\n";
  for (auto const& one : variables()) text += entry("\\fB" + plain(one.name) + "\\fR", one.meaning);
  text += ".SH EXIT STATUS\n";
  for (auto const& one : exit_codes()) text += entry("\\fB" + plain(one.code) + "\\fR", one.meaning);
  return text;
}

}  // namespace latchkey::tool
