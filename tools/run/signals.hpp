#pragma once

#include <signal.h>

#include <span>

namespace latchkey::tool {

// Signals as this process found them, and as it needs them. Made before there are threads; nothing is put back by
// itself.
class signals {
 public:
  // Blocks what the front reads from a descriptor, what a terminal sends to background groups, and ignores PIPE. What
  // was ignored (as by nohup) stays so.
  signals();

  // What is to be read from a signalfd: those that are handled, and CHLD.
  sigset_t const& read() const noexcept { return read_; }

  // In the child that becomes the command: everything as it came.
  void restore() const;

 private:
  sigset_t mask_{};
  sigset_t read_{};
  struct sigaction pipe_ {};
  struct sigaction child_ {};
};

// TERM, INT, HUP and QUIT: asked to end.
bool asks_to_end(int number);

// Ends this process by this signal, as if it had never been handled; without a core dump.
[[noreturn]] void die_of(int number);

}  // namespace latchkey::tool
