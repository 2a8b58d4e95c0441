#pragma once

#include <base/duration.hpp>
#include <options/table.hpp>

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace latchkey::tool {

// A command line, read. Its members check a value when it is asked for; all of them fail with `wrong_usage`.
class command_line {
 public:
  // Null: there was none.
  subcommand const* which() const noexcept { return which_; }
  std::vector<std::string> const& operands() const noexcept { return operands_; }

  bool has(std::string_view name) const { return values_.contains(name); }
  std::optional<std::string> text(std::string_view name) const;
  std::vector<std::string> all(std::string_view name) const;
  std::string choice(std::string_view name, std::string_view initial) const;
  std::optional<int> number(std::string_view name, int least, int most) const;
  // `least`: of what is no `forever`.
  milliseconds duration(std::string_view name, milliseconds initial, milliseconds least) const;

 private:
  friend command_line parse(std::vector<std::string> const& arguments);

  subcommand const* which_ = nullptr;
  std::map<std::string, std::vector<std::string>, std::less<>> values_;
  std::vector<std::string> operands_;
};

// Without the program's name. Throws `failure` (`wrong_usage`).
command_line parse(std::vector<std::string> const& arguments);

}  // namespace latchkey::tool
