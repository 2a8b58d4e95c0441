#pragma once

#include <options/connection.hpp>

#include <base/duration.hpp>
#include <optional>
#include <run/keeper.hpp>
#include <string>
#include <vector>

namespace latchkey::tool {

// What `latchkey run` was asked for, checked.
struct run_plan {
  connection server;
  std::string name;
  std::vector<std::string> also;
  std::string kind;
  std::optional<int> permits;
  milliseconds wait;
  milliseconds lease;
  milliseconds max_hold;
  int busy_code;
  int lost_code;
  std::string result_file;  // empty: none
  keeper_orders orders;
};

// Of the runs that surround this one, with blanks between them: LATCHKEY_OUTER_TOKENS and LATCHKEY_TOKEN.
std::string tokens_of_callers();

// Throws `failure`: wrong usage, or a command that is not there.
run_plan plan_of(command_line const& line);

}  // namespace latchkey::tool
