#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include <base/exit_code.hpp>
#include <base/say.hpp>
#include <memory>
#include <run/front.hpp>
#include <run/keeper.hpp>
#include <run/plan.hpp>
#include <subcommands.hpp>

namespace latchkey::tool {
namespace {

// Both ends are made before the fork, and each process keeps one: the other's end must be closed, since the end of the
// process is noticed by it.
template <class Tell>
int hold_and_keep(run_plan const& plan, outcome& ended, Tell const& tell) {
  signals const as_found;
  terminal const screen;
  auto ends = std::make_unique<std::pair<message_end, message_end>>(message_pair());
  auto const keeper = ::fork();
  if (keeper < 0) throw failure(no_fork, std::string("no process could be made: ") + ::strerror(errno));
  if (keeper == 0) {
    auto mine = std::move(ends->second);
    ends.reset();
    keep(std::move(mine), plan.orders, as_found, screen);
  }
  auto mine = std::move(ends->first);
  ends.reset();
  front holder(plan, std::move(mine), keeper, as_found, screen, ended);
  auto const code = holder.run();
  tell();
  if (code < 0) die_of(-code);
  return code;
}

}  // namespace

int run(command_line const& line) {
  outcome ended;
  auto const path = line.text("result");
  auto const tell = [&] {
    if (path && !path->empty()) write_outcome(*path, ended);
  };
  try {
    return hold_and_keep(plan_of(line), ended, tell);
  } catch (failure const& error) {
    ended.reason = error.what();
    // What went wrong first is to be told first.
    try {
      tell();
    } catch (failure const& second) {
      if (std::string(second.what()) != error.what()) complain(second.what());
    }
    throw;
  }
}

}  // namespace latchkey::tool
