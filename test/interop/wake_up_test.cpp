// Check 2: who waits for a lock of the other library is woken by the message of its release.
#include <interop/support/interop_world.hpp>
#include <support/catch.hpp>

#include <algorithm>

using namespace latchkey::test;

namespace {

constexpr int rounds = 11;

// From the call of unlock to the return of the waiter's lock.
std::chrono::microseconds wake_up(interop_world& world, direction const& between, interop_kind const& kind,
                                  std::string const& names) {
  auto& [holder, waiter] = between;
  auto const& rival = kind.rivals.front();
  demand(holder.call("h", "try_lock", kind.name, names), "true", "the holder's try");
  auto waiting = waiter.start("w", "lock", rival, names);
  world.await_waiter(kind, names, waiter, "w");
  auto const unlocked = clock::now();
  demand(holder.call("h", "unlock", kind.name, names), "released", "the holder's unlock");
  auto const held = peer::value_in(std::move(waiting), "the waiter's lock");
  demand(held, "held", "the waiter's lock");
  demand(waiter.call("w", "unlock", rival, names), "released", "the waiter's unlock");
  return std::chrono::duration_cast<std::chrono::microseconds>(held.at - unlocked);
}

}  // namespace

TEST_CASE("a release wakes a waiter of the other library at once", "[interop][brief]") {
  auto& world = steady_world();
  for (auto const& kind : interop_kinds()) {
    for (auto const& between : {world.redisson_first(), world.latchkey_first()}) {
      cell("2 wake-up", kind.name, between.name(), [&] {
        std::vector<std::chrono::microseconds> times;
        for (int i = 0; i < rounds; ++i) {
          times.push_back(wake_up(world, between, kind, names_for(kind)));
          demand(times.back() < 500ms, "a wake-up took " + std::to_string(times.back().count()) + " us");
        }
        std::sort(times.begin(), times.end());
        return "median " + std::to_string(times[rounds / 2].count()) + " us";
      });
    }
  }
}
