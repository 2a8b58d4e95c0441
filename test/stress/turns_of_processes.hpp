#pragma once

#include <support/exclusive_kinds.hpp>
#include <support/patience.hpp>

namespace latchkey::test {

struct disturbance {
  bool kill_connections = false;
  bool kill_process = false;
  long turns = 1'000 / slowness;  // of every process
};

// Four processes read a plain file, add one and write it back, under a lock of this kind. Fails if a turn is lost.
void play_turns(exclusive_kind const& kind, disturbance how);

// A turn of these is one of each of several locks: they take several times as long.
inline bool is_joint(exclusive_kind const& kind) { return kind.name == "multi_lock" || kind.name == "red_lock"; }

}  // namespace latchkey::test
