#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace latchkey::tool {

// All processes below this one that have not been reaped, as far as /proc shows them in one look: a snapshot.
std::vector<pid_t> descendants_of(pid_t root);

// -1: it is gone.
pid_t parent_of(pid_t process);

// As /proc/PID/comm has it; empty if it is gone.
std::string name_of(pid_t process);

void signal_descendants(pid_t root, int number);

// Makes this process the parent of orphans among its descendants.
void adopt_orphans();

// Kills and reaps until no descendant of this process is left; the status of `watched`, or -1 if it was not among them.
// A process that hangs in the kernel is waited for.
int kill_all_descendants(pid_t watched);

}  // namespace latchkey::tool
