#pragma once

#include <array>
#include <span>
#include <string_view>

// What the program understands. The parser, --help, the manual page and the completions are made from these tables.
namespace latchkey::tool {

// How a shell completes a word.
enum class words { none, duration, number, name, file, choice, text };

struct option {
  std::string_view name;   // without the two dashes
  char letter;             // 0: none
  std::string_view value;  // its name in the help; empty: a flag
  words kind;
  std::string_view choices;  // for `words::choice`, with bars between them
  std::string_view meaning;
  bool repeats = false;
};

struct subcommand {
  std::string_view name;
  std::string_view other_name;       // empty: none
  std::string_view operands;         // behind the options
  std::string_view operand_choices;  // with bars between them; empty: any
  std::string_view meaning;          // for the list of all
  std::string_view text;             // for its own help, in paragraphs
  std::span<option const> options;
  int least_operands;
  int most_operands;  // -1: any number
  bool ends_options;  // whatever follows the second operand belongs to somebody else's command line
};

struct variable {
  std::string_view name;
  std::string_view meaning;
};

struct code_meaning {
  std::string_view code;
  std::string_view meaning;
};

std::span<option const> common_options();  // before and behind the name of a subcommand
std::span<subcommand const> subcommands();
std::span<variable const> variables();
std::span<code_meaning const> exit_codes();

// By either name; null: there is none.
subcommand const* find_subcommand(std::string_view name);

}  // namespace latchkey::tool
