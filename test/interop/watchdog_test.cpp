// Check 3: the watchdog of each library keeps its hold against the other's tries.
#include <interop/support/interop_world.hpp>
#include <support/catch.hpp>

using namespace latchkey::test;

namespace {

constexpr auto kept_for = 3 * quick_timeout;

std::string watch(direction const& between, interop_kind const& kind) {
  auto& [holder, other] = between;
  auto const names = names_for(kind);
  auto const worker = kind.name + holder.library();
  demand(holder.call(worker, "lock", kind.name, names), "held", "the holder's lock");
  stopwatch const since;
  int tries = 0;
  for (; since.passed() < kept_for; ++tries) {
    for (auto const& rival : kind.rivals) {
      demand(other.call(worker, "try_lock", rival, names), "false",
             rival + " by the other after " + std::to_string(since.passed().count()) + " ms");
    }
    std::this_thread::sleep_for(50ms);
  }
  demand(holder.call(worker, "unlock", kind.name, names), "released", "the holder's unlock");
  return std::to_string(tries) + " tries";
}

}  // namespace

TEST_CASE("the watchdog of each library keeps its hold for three periods", "[interop][brief]") {
  interop_world world(quick_timeout);
  std::vector<cell_job> jobs;
  for (auto const& kind : interop_kinds()) {
    for (auto const& between : {world.redisson_first(), world.latchkey_first()}) {
      jobs.push_back({kind.name, between.name(), [&kind, between] { return watch(between, kind); }});
    }
  }
  cells_together("3 watchdog", jobs);
}
