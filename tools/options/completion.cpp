#include <base/exit_code.hpp>
#include <base/say.hpp>
#include <options/help.hpp>
#include <options/table.hpp>
#include <vector>

namespace latchkey::tool {
namespace {

std::vector<option> options_of(subcommand const& one) {
  std::vector<option> all(one.options.begin(), one.options.end());
  all.insert(all.end(), common_options().begin(), common_options().end());
  return all;
}

std::string spaced(std::string_view choices) {
  auto text = std::string(choices);
  for (char& c : text)
    if (c == '|') c = ' ';
  return text;
}

std::string names_of(std::vector<option> const& options) {
  std::string text;
  for (auto const& one : options) {
    (text += text.empty() ? "--" : " --") += one.name;
    if (one.letter != 0) (text += " -") += one.letter;
  }
  return text;
}

std::string subcommand_names() {
  std::string text;
  for (auto const& one : subcommands()) (text += text.empty() ? "" : " ") += one.name;
  return text;
}

// What stands behind an option, as a command of bash; files are bash's own business.
std::string bash_values(option const& one) {
  auto pattern = "--" + std::string(one.name);
  if (one.letter != 0) ((pattern += "|-") += one.letter);
  auto const action = one.kind == words::choice ? "COMPREPLY=($(compgen -W '" + spaced(one.choices) + "' -- \"$word\"))"
                      : one.kind == words::file ? std::string("COMPREPLY=($(compgen -f -- \"$word\"))")
                                                : std::string("COMPREPLY=()");
  return "      " + pattern + ") " + action + "; return ;;\n";
}

std::string for_bash() {
  std::string text =
      "# latchkey, for bash: source <(latchkey completion bash)\n"
      "_latchkey() {\n"
      "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} subcommand= i\n"
      "  for ((i = 1; i < COMP_CWORD; ++i)); do\n"
      "    case ${COMP_WORDS[i]} in\n";
  for (auto const& one : subcommands())
    text += "      " + std::string(one.name) + ") subcommand=${COMP_WORDS[i]}; break ;;\n";
  text += "    esac\n  done\n  case $subcommand in\n";
  for (auto const& one : subcommands()) {
    auto const options = options_of(one);
    text += "    " + std::string(one.name) + ")\n    case $before in\n";
    for (auto const& each : options)
      if (!each.value.empty()) text += bash_values(each);
    text += "    esac\n    if [[ $word == -* ]]; then\n      COMPREPLY=($(compgen -W '" + names_of(options) +
            "' -- \"$word\"))\n";
    if (!one.operand_choices.empty())
      text += "    else\n      COMPREPLY=($(compgen -W '" + spaced(one.operand_choices) + "' -- \"$word\"))\n";
    else if (one.ends_options)
      text += "    else\n      COMPREPLY=($(compgen -c -- \"$word\"))\n";
    text += "    fi ;;\n";
  }
  std::vector<option> const common(common_options().begin(), common_options().end());
  text += "    *)\n    COMPREPLY=($(compgen -W '" + subcommand_names() + ' ' + names_of(common) +
          "' -- \"$word\")) ;;\n  esac\n}\ncomplete -F _latchkey latchkey\n";
  return text;
}

// In the quotes of both other shells.
std::string in_quotes(std::string_view text) {
  std::string safe;
  for (char const c : text) safe += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return safe;
}

std::string zsh_option(option const& one) {
  std::string meaning;
  for (char const c : one.meaning)
    meaning += c == '[' || c == ']' || c == ':' ? '\\' + std::string(1, c) : std::string(1, c);
  auto rest = '[' + in_quotes(meaning) + ']';
  if (!one.value.empty()) {
    rest += ':' + std::string(one.value) + ':';
    if (one.kind == words::choice) rest += '(' + spaced(one.choices) + ')';
    if (one.kind == words::file) rest += "_files";
  }
  auto const many = one.repeats ? std::string("*") : std::string();
  auto text = "    '" + many + "--" + std::string(one.name) + (one.value.empty() ? "" : "=") + rest + "' \\\n";
  if (one.letter != 0) text += "    '" + many + '-' + std::string(1, one.letter) + rest + "' \\\n";
  return text;
}

std::string for_zsh() {
  std::string text =
      "#compdef latchkey\n# latchkey, for zsh: latchkey completion zsh >\"${fpath[1]}/_latchkey\"\n_latchkey() {\n"
      "  local subcommand=${words[(r)(";
  for (bool first = true; auto const& one : subcommands()) {
    (text += first ? "" : "|") += one.name;
    first = false;
  }
  text += ")]}\n  case $subcommand in\n";
  for (auto const& one : subcommands()) {
    text += "  " + std::string(one.name) + ")\n    _arguments -s \\\n";
    for (auto const& each : options_of(one)) text += zsh_option(each);
    auto const operands =
        one.operand_choices.empty() ? std::string("_normal") : '(' + spaced(one.operand_choices) + ')';
    text += "    '*: :" + operands + "' ;;\n";
  }
  text += "  *)\n    _arguments -s \\\n";
  for (auto const& each : common_options()) text += zsh_option(each);
  return text + "    '1: :(" + subcommand_names() + ")' ;;\n  esac\n}\n_latchkey \"$@\"\n";
}

std::string fish_option(option const& one, std::string const& when) {
  auto text = "complete -c latchkey" + when + " -l " + std::string(one.name);
  if (one.letter != 0) (text += " -s ") += one.letter;
  if (!one.value.empty()) text += one.kind == words::file ? " -rF" : " -x";
  if (one.kind == words::choice) text += " -a '" + spaced(one.choices) + "'";
  return text + " -d '" + in_quotes(one.meaning) + "'\n";
}

std::string for_fish() {
  std::string text = "# latchkey, for fish: latchkey completion fish | source\n";
  for (auto const& one : common_options()) text += fish_option(one, "");
  for (auto const& one : subcommands()) {
    auto const name = std::string(one.name);
    text += "complete -c latchkey -n __fish_use_subcommand -xa " + name + " -d '" + in_quotes(one.meaning) + "'\n";
    auto const when = " -n '__fish_seen_subcommand_from " + name + "'";
    for (auto const& each : one.options) text += fish_option(each, when);
    if (!one.operand_choices.empty())
      text += "complete -c latchkey" + when + " -xa '" + spaced(one.operand_choices) + "'\n";
  }
  return text;
}

}  // namespace

std::string completion_for(std::string_view shell) {
  if (shell == "bash") return for_bash();
  if (shell == "zsh") return for_zsh();
  if (shell == "fish") return for_fish();
  throw failure(wrong_usage, "completions are there for bash, zsh and fish, not for " + quoted(shell));
}

}  // namespace latchkey::tool
