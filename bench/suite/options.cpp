#include <suite/options.hpp>

#include <algorithm>
#include <charconv>

namespace bench {

int parse_rounds(std::string const& text, int most) {
  int value = 0;
  auto const end = text.data() + text.size();
  auto const [stopped, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || stopped != end || value < 1 || value > most)
    throw bad_option("--rounds takes a whole number from 1 to " + std::to_string(most) + ", not '" + text + "'");
  return value;
}

namespace {

constexpr int most_rounds = 1'000;

void apply(suite_options& wanted, std::string const& name, std::string const& value) {
  if (value.empty()) throw bad_option(name + " needs a value");
  if (name == "--rounds") {
    wanted.rounds = parse_rounds(value, most_rounds);
  } else if (name == "--json") {
    wanted.json = value;
  } else {
    auto const groups = all_groups();
    auto const found = std::find_if(groups.begin(), groups.end(), [&](auto const& one) { return one.name == value; });
    if (found == groups.end()) throw bad_option("there is no group '" + value + "' (--list names them)");
    wanted.only.push_back(&*found);
  }
}

}  // namespace

suite_options parse_options(std::vector<std::string> const& arguments) {
  suite_options wanted;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    auto const& argument = arguments[i];
    if (argument == "--help" || argument == "-h") {
      wanted.help = true;
    } else if (argument == "--list") {
      wanted.list = true;
    } else {
      auto const equals = argument.find('=');
      auto const name = argument.substr(0, equals);
      if (name != "--rounds" && name != "--json" && name != "--only")
        throw bad_option("there is no option '" + name + "'");
      if (equals == std::string::npos && ++i == arguments.size()) throw bad_option(name + " needs a value");
      apply(wanted, name, equals == std::string::npos ? arguments[i] : argument.substr(equals + 1));
    }
  }
  return wanted;
}

std::string list_text() {
  std::string text;
  for (auto const& one : all_groups()) {
    std::string left(one.name);
    left.resize(14, ' ');
    text += left + std::string(one.meaning) + "\n";
  }
  return text;
}

}  // namespace bench
