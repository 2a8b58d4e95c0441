#include <pair/options.hpp>

#include <string_view>

namespace bench {
namespace {

constexpr int most_rounds = 10'000;

void apply(options& wanted, std::string const& name, std::string const& value) {
  if (value.empty()) throw bad_option(name + " needs a value");
  if (name == "--rounds") {
    wanted.rounds = parse_rounds(value, most_rounds);
  } else if (name == "--json") {
    wanted.json = value;
  } else {
    regime const* found = find_regime(value);
    if (!found) throw bad_option("--only: there is no regime '" + value + "'; there are " + regime_names());
    wanted.only.push_back(found);
  }
}

}  // namespace

options parse_options(std::vector<std::string> const& arguments) {
  options wanted;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    auto const& argument = arguments[i];
    if (argument == "--help" || argument == "-h") {
      wanted.help = true;
      continue;
    }
    auto const equals = argument.find('=');
    auto const name = argument.substr(0, equals);
    if (name != "--rounds" && name != "--json" && name != "--only")
      throw bad_option("there is no option '" + name + "'");
    if (equals != std::string::npos) {
      apply(wanted, name, argument.substr(equals + 1));
    } else {
      if (++i == arguments.size()) throw bad_option(name + " needs a value");
      apply(wanted, name, arguments[i]);
    }
  }
  return wanted;
}

std::string help_text() {
  std::string text =
      "The time of lock() and unlock() by a blocking caller, beside that of a bare blocking hiredis client which\n"
      "runs the same scripts by hand on the same private redis-server, over loopback TCP. Short rounds of the one\n"
      "and of the other alternate; what is shown are medians over the rounds.\n\n"
      "Usage: pair [options]\n\n";
  text += "  --rounds N       rounds of each regime and side (" + std::to_string(options{}.rounds) + ")\n";
  text +=
      "  --only REGIME    measure this regime; may be given several times\n"
      "  --json FILE      write the results there as well\n"
      "  --help           print this\n\nRegimes:\n";
  for (auto const& one : all_regimes()) {
    std::string left = "  " + std::string(one.name);
    left.resize(22, ' ');
    text += left + std::string(one.meaning) + "\n";
  }
  text += "\nExit status: 0 every gate was kept; 1 one was missed, or something went wrong; 2 a bad option.\n";
  return text;
}

}  // namespace bench
