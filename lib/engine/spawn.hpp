#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace latchkey::detail {

// The full path of a program, looked up in PATH unless it contains a slash; empty if there is none.
std::string find_program(std::string const& name);

// Starts a program in a session of its own, with its output in `log`. The kernel ends it with SIGTERM when the
// calling thread ends. Returns its number, or -1 with errno.
pid_t spawn_bound(std::string const& program, std::vector<std::string> const& arguments, std::string const& log);

}  // namespace latchkey::detail
