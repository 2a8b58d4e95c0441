#include <boost/program_options/errors.hpp>
#include <boost/program_options/options_description.hpp>
#include <boost/program_options/parsers.hpp>
#include <boost/program_options/value_semantic.hpp>

#include <base/exit_code.hpp>
#include <base/say.hpp>
#include <charconv>
#include <limits>
#include <options/parse.hpp>

namespace latchkey::tool {
namespace {

namespace po = boost::program_options;

[[noreturn]] void wrong(std::string const& text) { throw failure(wrong_usage, text + "; see latchkey --help"); }

void add(po::options_description& to, std::span<option const> options) {
  for (auto const& one : options) {
    auto name = std::string(one.name);
    if (one.letter != 0) (name += ',') += one.letter;
    if (one.value.empty())
      to.add_options()(name.c_str(), "");
    else
      to.add_options()(name.c_str(), po::value<std::string>(), "");
  }
}

// Operands may stand between options. Behind `--`, and from operand number `last` on, all words are operands.
class operand_reader {
 public:
  explicit operand_reader(int last) : last_(last) {}

  std::vector<po::option> operator()(std::vector<std::string>& words) {
    auto const& word = words.front();
    bool const end = word == "--";
    if (!end && word.size() > 1 && word.front() == '-') return {};
    // Boost asks about the value of an option alone, and takes what is an operand and an option's name for that option.
    // The last operand, about which it asks in the same way, it knows by itself.
    if (words.size() == 1 && !end) return {};
    if (!end) ++seen_;
    auto const taken = end || seen_ >= last_ ? words.size() : std::size_t{1};
    std::vector<po::option> found;
    for (std::size_t i = end ? 1 : 0; i < taken; ++i) {
      po::option operand;
      operand.value = {words[i]};
      operand.original_tokens = {words[i]};
      operand.position_key = std::numeric_limits<int>::max();
      found.push_back(std::move(operand));
    }
    words.erase(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(taken));
    // An empty answer means that the words are somebody else's.
    if (found.empty()) found.emplace_back();
    return found;
  }

 private:
  int last_;
  int seen_ = 0;
};

std::vector<po::option> read(std::vector<std::string> const& arguments, po::options_description const& known,
                             int last) {
  using namespace po::command_line_style;
  constexpr int style = allow_long | long_allow_adjacent | long_allow_next | allow_short | short_allow_adjacent |
                        short_allow_next | allow_dash_for_short | allow_sticky;
  try {
    return po::command_line_parser(arguments)
        .options(known)
        .style(style)
        .extra_style_parser(operand_reader(last))
        .run()
        .options;
  } catch (po::unknown_option const& error) {
    // The option alone: what stands behind its `=` may be a secret.
    auto const name = error.get_option_name();
    wrong("there is no option " + quoted(name.substr(0, name.find('='))));
  } catch (po::error_with_option_name const& error) {
    auto const name = error.get_option_name();
    auto const what = std::string(error.what());
    bool const flag = what.find("does not take") != what.npos || what.find("extra") != what.npos;
    wrong(quoted(name.substr(0, name.find('='))) + (flag ? " takes no value" : " needs a value"));
  } catch (po::error const&) {
    wrong("the options cannot be read");
  }
}

option const* find_option(subcommand const* which, std::string_view name) {
  for (auto const& one : common_options())
    if (one.name == name) return &one;
  if (which)
    for (auto const& one : which->options)
      if (one.name == name) return &one;
  return nullptr;
}

std::string shown(std::string_view name) { return "--" + std::string(name); }

// The first operand; options of subcommands are not known yet, so what follows it is not looked at.
subcommand const* read_subcommand(std::vector<std::string> const& arguments) {
  po::options_description common;
  add(common, common_options());
  for (auto const& one : read(arguments, common, 1)) {
    if (!one.string_key.empty() || one.value.empty()) continue;
    auto const* const found = find_subcommand(one.value.front());
    if (!found) wrong("there is no subcommand " + quoted(one.value.front()));
    return found;
  }
  return nullptr;
}

}  // namespace

command_line parse(std::vector<std::string> const& arguments) {
  command_line line;
  line.which_ = read_subcommand(arguments);
  auto const* const which = line.which_;
  po::options_description known;
  add(known, common_options());
  if (which) add(known, which->options);
  // The subcommand is an operand too, and so is NAME.
  constexpr int none = std::numeric_limits<int>::max();
  bool subcommand_seen = false;
  for (auto const& one : read(arguments, known, which && which->ends_options ? 3 : none)) {
    if (one.string_key.empty()) {
      if (one.value.empty()) continue;
      if (std::exchange(subcommand_seen, true)) line.operands_.push_back(one.value.front());
      continue;
    }
    auto const* const about = find_option(which, one.string_key);
    auto& values = line.values_[one.string_key];
    if (!values.empty() && about && !about->value.empty() && !about->repeats)
      wrong(shown(one.string_key) + " is given twice");
    values.push_back(one.value.empty() ? std::string() : one.value.front());
  }
  if (line.has("help") || line.has("version") || line.has("manual")) return line;
  if (!which) wrong("a subcommand is missing");
  auto const count = static_cast<int>(line.operands_.size());
  if (count < which->least_operands || (which->most_operands >= 0 && count > which->most_operands))
    wrong("usage: latchkey " + std::string(which->name) + " [options] " + std::string(which->operands));
  return line;
}

std::optional<std::string> command_line::text(std::string_view name) const {
  auto const found = values_.find(name);
  if (found == values_.end()) return {};
  return found->second.front();
}

std::vector<std::string> command_line::all(std::string_view name) const {
  auto const found = values_.find(name);
  return found == values_.end() ? std::vector<std::string>() : found->second;
}

std::string command_line::choice(std::string_view name, std::string_view initial) const {
  auto const given = text(name);
  if (!given) return std::string(initial);
  auto choices = find_option(which_, name)->choices;
  for (;;) {
    auto const bar = choices.find('|');
    if (choices.substr(0, bar) == *given) return *given;
    if (bar == choices.npos) break;
    choices.remove_prefix(bar + 1);
  }
  wrong(shown(name) + " is one of " + std::string(find_option(which_, name)->choices) + ", not " + quoted(*given));
}

std::optional<int> command_line::number(std::string_view name, int least, int most) const {
  auto const given = text(name);
  if (!given) return {};
  int value = 0;
  auto const* const end = given->data() + given->size();
  auto const [stopped, failed] = std::from_chars(given->data(), end, value);
  if (failed != std::errc() || stopped != end || value < least || value > most)
    wrong(shown(name) + " is a number from " + std::to_string(least) + " to " + std::to_string(most) + ", not " +
          quoted(*given));
  return value;
}

milliseconds command_line::duration(std::string_view name, milliseconds initial, milliseconds least) const {
  auto const given = text(name);
  if (!given) return initial;
  auto const length = read_duration(*given);
  if (!length) wrong(shown(name) + " is a duration such as 250ms, 30s, 1m30s or forever, not " + quoted(*given));
  if (*length < least) wrong(shown(name) + " is at least " + in_words(least));
  return *length;
}

}  // namespace latchkey::tool
