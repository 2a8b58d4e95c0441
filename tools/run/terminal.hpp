#pragma once

#include <sys/types.h>

namespace latchkey::tool {

// The terminal of this session, if there is one. SIGTTOU is blocked.
class terminal {
 public:
  terminal();
  terminal(terminal const&) = delete;
  terminal& operator=(terminal const&) = delete;
  ~terminal();

  // The keys go to our group: `latchkey run` stands in the foreground.
  bool is_ours() const;
  // And to nobody beside us: we are not part of a pipeline.
  bool is_ours_alone() const;
  bool is_of(pid_t group) const;
  void give_to(pid_t group) const;
  // Takes it back from that group, if the group still has it.
  void take_from(pid_t group) const;

 private:
  int device_;
  pid_t our_group_;
};

// Is there a shell above our group, in this session, that would continue us when we stop? Before it stops a group for a
// key the kernel asks the same.
bool somebody_continues_us();

}  // namespace latchkey::tool
