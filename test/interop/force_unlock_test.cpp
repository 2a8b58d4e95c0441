// Check 5: what the other library unlocks by force is lost, and latchkey's holder learns of it.
#include <interop/support/interop_world.hpp>
#include <support/catch.hpp>

using namespace latchkey::test;

namespace {

constexpr auto noticed_within = quick_timeout / 3 + 1s;

// Kinds that are made of locks are unlocked by force lock by lock: Redisson knows no other way.
void unlock_by_force(peer& by, interop_kind const& kind, std::string const& names) {
  if (kind.asks) return demand(by.call("f", "force_unlock", kind.name, names), "true", "force_unlock");
  auto const all = parts_of(names, ',');
  for (std::size_t i = 0; i < all.size(); ++i) {
    auto const where = i == 0 ? "lock" : "lock_on_" + std::to_string(i);
    // Who has most members has the red lock. The others follow.
    demand(wait_until([&] { return by.call("f", "is_locked", where, all[i]) == "true"; }), all[i] + " was never taken");
    demand(by.call("f", "force_unlock", where, all[i]), "true", "force_unlock of " + all[i]);
  }
}

void taken_over(direction const& between, interop_kind const& kind, std::string const& names) {
  auto& [by, holder] = between;
  auto const& rival = kind.rivals.front();
  demand(by.call("f", "try_lock", rival, names), "true", "the try of who unlocked by force");
  auto const unlocked = holder.call("h", "unlock", kind.name, names);
  // Redisson's red lock hides what unlocking its members says.
  bool const told = kind.name != "red_lock" || holder.library() == "latchkey";
  demand(unlocked.ok != told, "the former holder's unlock: " + to_string(unlocked));
  demand(by.call("f", "unlock", rival, names), "released", "the unlock of who took it");
}

}  // namespace

TEST_CASE("latchkey's holder learns that Redisson unlocked by force", "[interop][brief]") {
  interop_world world(quick_timeout);
  auto const between = world.redisson_first();
  for (auto const& kind : interop_kinds()) {
    cell("5 force", kind.name, between.name(), [&] {
      auto const names = names_for(kind);
      demand(world.ours->call("h", "lock", kind.name, names), "held", "the holder's lock");
      unlock_by_force(*world.redisson, kind, names);
      stopwatch const since;
      demand(world.ours->call("e", "await_loss", kind.name, names, noticed_within), "lost", "the holder is told");
      auto const after = since.passed();
      taken_over(between, kind, names);
      return "told after " + std::to_string(after.count()) + " ms";
    });
  }
}

TEST_CASE("what latchkey unlocks by force Redisson holds no longer", "[interop][brief]") {
  interop_world world(quick_timeout);
  auto const between = world.latchkey_first();
  for (auto const& kind : interop_kinds()) {
    cell("5 force", kind.name, between.name(), [&] {
      auto const names = names_for(kind);
      demand(world.redisson->call("h", "lock", kind.name, names), "held", "the holder's lock");
      unlock_by_force(*world.ours, kind, names);
      taken_over(between, kind, names);
      return std::string();
    });
  }
}
