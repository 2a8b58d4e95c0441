#pragma once

#include <sys/types.h>

#include <run/signals.hpp>
#include <run/terminal.hpp>
#include <string>
#include <vector>

namespace latchkey::tool {

// Where execvp would find a program. Throws `failure`: `not_found`, `not_executable`.
std::string find_program(std::string const& name);

// A process that is about to become the command.
struct started_command {
  pid_t pid = -1;   // -1: no process could be made
  int failed = -1;  // the end of a pipe: closed when the command runs, or else what execve said
};

// In a process group of its own, which gets the terminal if `foreground` is not null.
started_command start_command(std::string const& path, std::vector<std::string> const& words, signals const& as_found,
                              terminal const* foreground);

}  // namespace latchkey::tool
