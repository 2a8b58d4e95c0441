#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace latchkey::test {

// One line of input, as the Java driver reads it: NUMBER WORKER OPERATION KIND NAME[,NAME...] ARGUMENT...
struct call_line {
  std::string number;
  std::string worker;
  std::string operation;
  std::string kind;
  std::vector<std::string> names;
  std::vector<std::string> arguments;

  static call_line parse(std::string_view line);

  std::string const& name() const { return names.at(0); }
  bool has(std::size_t argument) const { return argument < arguments.size(); }
  long long number_at(std::size_t argument) const { return std::stoll(arguments.at(argument)); }
  std::chrono::milliseconds time_at(std::size_t argument) const {
    return std::chrono::milliseconds(number_at(argument));
  }
};

// So that a name is one word: what is no letter or digit becomes %XX.
std::string percent_encoded(std::string_view text);
std::string percent_decoded(std::string_view text);

// The parts between separators; of an empty text none.
std::vector<std::string> parts_of(std::string_view text, char separator);

}  // namespace latchkey::test
