// Four processes take turns under a lock of exclusive kind: see turns_of_processes.hpp.
#include <stress/turns_of_processes.hpp>
#include <support/catch.hpp>

using namespace latchkey::test;

namespace {

void every_kind(disturbance how) {
  for (auto const& kind : exclusive_kinds()) {
    if (is_joint(kind)) continue;
    INFO(kind.name);
    play_turns(kind, how);
  }
}

}  // namespace

TEST_CASE("every exclusive kind: four processes take many turns each, and none is lost", "[stress][kind]") {
  every_kind({});
}

TEST_CASE("every exclusive kind: no turn is lost when one of four processes is killed in the middle",
          "[stress][kind]") {
  every_kind({.kill_process = true, .turns = 300 / slowness});
}

TEST_CASE("every exclusive kind: no turn is lost while connections are killed every 20 ms", "[stress][kind]") {
  every_kind({.kill_connections = true, .turns = 300 / slowness});
}
