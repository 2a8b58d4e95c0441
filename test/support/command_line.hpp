#pragma once

#include <charconv>
#include <cstdio>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace latchkey::test {

// Nothing may stand behind it.
template <class Number>
bool read_number(std::string_view word, Number& out) {
  auto const [end, failed] = std::from_chars(word.data(), word.data() + word.size(), out);
  return failed == std::errc() && end == word.data() + word.size();
}

inline std::vector<std::string> between_commas(std::string_view word) {
  std::vector<std::string> parts;
  while (!word.empty()) {
    auto const end = word.find(',');
    parts.emplace_back(word.substr(0, end));
    word.remove_prefix(end == word.npos ? word.size() : end + 1);
  }
  return parts;
}

// The options of a program: --flag, --name value or --name=value. It refers to what it fills in.
class command_line {
 public:
  using reader = std::function<bool(std::string_view)>;  // false: that is no value of this option

  explicit command_line(std::string program) : program_(std::move(program)) {}

  command_line& flag(std::string name, bool& out) {
    flags_[std::move(name)] = &out;
    return *this;
  }
  command_line& value(std::string name, reader read) {
    values_[std::move(name)] = std::move(read);
    return *this;
  }
  command_line& text(std::string name, std::string& out) {
    return value(std::move(name), [&out](std::string_view word) { return !(out = word).empty(); });
  }
  template <class Number>
  command_line& number(std::string name, Number& out, Number least = std::numeric_limits<Number>::lowest(),
                       Number most = std::numeric_limits<Number>::max()) {
    return value(std::move(name), [&out, least, most](std::string_view word) {
      return read_number(word, out) && out >= least && out <= most;
    });
  }

  // Prints help, or what is wrong, and gives the exit code then.
  std::optional<int> read(int count, char const* const* words, std::function<void()> const& print_help) const {
    for (int i = 1; i < count; ++i) {
      std::string_view const word = words[i];
      if (word == "--help" || word == "-h") {
        print_help();
        return 0;
      }
      if (auto const found = flags_.find(word); found != flags_.end()) {
        *found->second = true;
        continue;
      }
      auto const equals = word.find('=');
      auto const found = values_.find(word.substr(0, equals));
      bool const follows = equals == word.npos && found != values_.end();
      std::string_view const text = equals != word.npos        ? word.substr(equals + 1)
                                    : follows && i + 1 < count ? words[i + 1]
                                                               : std::string_view();
      if (found == values_.end() || (follows && i + 1 == count) || !found->second(text))
        return wrong("what is " + std::string(word) + (follows ? " " + std::string(text) : "") + "? Try --help");
      i += follows;
    }
    return {};
  }

  int wrong(std::string const& why) const {
    std::fprintf(stderr, "%s: %s\n", program_.c_str(), why.c_str());
    return 2;
  }

 private:
  std::string program_;
  std::map<std::string, bool*, std::less<>> flags_;
  std::map<std::string, reader, std::less<>> values_;
};

}  // namespace latchkey::test
