// Check 1: who holds a lock keeps the other library out, and both see the same.
#include <interop/support/interop_world.hpp>
#include <support/catch.hpp>

#include <algorithm>

using namespace latchkey::test;

namespace {

// Times to live as two processes see them within a moment.
constexpr long long moment_ms = 2000;

struct exclusion {
  direction between;
  interop_kind const& kind;
  std::string names;
  peer& holder = between.first;
  peer& other = between.second;

  answer by_holder(std::string const& operation) { return holder.call("h", operation, kind.name, names); }

  void rivals_are_refused(std::string const& when) {
    for (auto const& rival : kind.rivals) {
      demand(other.call("o", "try_lock", rival, names), "false", rival + " by the other " + when);
    }
  }

  void views_agree(std::string const& count) {
    if (!kind.asks) return;
    demand(by_holder("hold_count"), count, "the holder's hold count");
    demand(other.call("o", "hold_count", kind.name, names), "0", "the other's hold count");
    demand(by_holder("is_held"), "true", "held, says the holder");
    demand(other.call("o", "is_held", kind.name, names), "false", "held, says the other");
    demand(by_holder("is_locked"), "true", "locked, says the holder");
    demand(other.call("o", "is_locked", kind.name, names), "true", "locked, says the other");
    // A renewal may come in between; of a write lock it cuts what a re-entry has added.
    auto const before = std::stoll(by_holder("remaining").value);
    auto const theirs = std::stoll(other.call("o", "remaining", kind.name, names).value);
    auto const after = std::stoll(by_holder("remaining").value);
    auto const all = std::to_string(before) + ", " + std::to_string(theirs) + ", " + std::to_string(after);
    demand(std::min(before, after) > 0 && std::max(before, after) <= kind.longest_lease, "times to live: " + all);
    demand(theirs <= (after > before ? kind.longest_lease : before), "times to live: " + all);
    demand(theirs >= std::min(before, after) - moment_ms, "times to live: " + all);
  }

  void run() {
    demand(by_holder("try_lock"), "true", "the first try");
    rivals_are_refused("while it is held");
    views_agree("1");
    if (kind.reentrant) {
      demand(by_holder("try_lock"), "true", "the try again");
      rivals_are_refused("after the re-entry");
      views_agree("2");
      demand(by_holder("unlock"), "released", "the first unlock");
      rivals_are_refused("after the first unlock");
      views_agree("1");
    }
    demand(by_holder("unlock"), "released", "the last unlock");
    for (auto const& rival : kind.rivals) {
      demand(other.call("o", "try_lock", rival, names), "true", rival + " by the other when it is free");
      demand(other.call("o", "unlock", rival, names), "released", "the other's unlock");
    }
  }
};

}  // namespace

TEST_CASE("who holds a lock keeps the other library out", "[interop][brief]") {
  auto& world = steady_world();
  for (auto const& kind : interop_kinds()) {
    for (auto const& between : {world.redisson_first(), world.latchkey_first()}) {
      cell("1 exclusion", kind.name, between.name(), [&] {
        exclusion{between, kind, names_for(kind)}.run();
        return std::string();
      });
    }
  }
}

TEST_CASE("names of any bytes are the same lock to both libraries", "[interop][brief]") {
  auto& world = steady_world();
  for (auto const& kind : interop_kinds()) {
    for (auto const& between : {world.redisson_first(), world.latchkey_first()}) {
      cell("1 odd names", kind.name, between.name(), [&] {
        for (auto const& server : world.servers) server->admin().ok("FLUSHALL");
        for (auto const& name : odd_names()) exclusion{between, kind, names_for(kind, name)}.run();
        return std::to_string(odd_names().size()) + " names";
      });
    }
  }
}
