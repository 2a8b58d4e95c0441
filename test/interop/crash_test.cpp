// Check 4: when a holder is killed, the other library gets the lock when the lease ends, and not before.
#include <interop/support/interop_world.hpp>
#include <support/catch.hpp>

#include <algorithm>

using namespace latchkey::test;

namespace {

// Of the clocks of server and test, which both count whole milliseconds.
constexpr auto rounding = 5ms;
constexpr auto soon = 1500ms;

struct orphan {
  interop_kind const& kind;
  std::string names;
  std::future<answer> waiting;
  std::chrono::milliseconds left{0};
};

// The longest lease among the locks that it is made of.
std::chrono::milliseconds time_left(interop_world& world, std::string const& names) {
  std::int64_t longest = 0;
  auto const all = parts_of(names, ',');
  for (std::size_t i = 0; i < all.size(); ++i) {
    longest = std::max(longest, world.servers[i]->admin().integer("PTTL", percent_decoded(all[i])));
  }
  return std::chrono::milliseconds(longest);
}

// The fair lock of Redisson 3.17 counts its hint from the lease that it found first. Once that has been renewed, or is
// over a moment before the server says so, the hint is negative, and lock() waits for a message, which a crash does not
// send.
bool waits_for_ever(peer const& waiter, interop_kind const& kind) {
  return waiter.library() == "Redisson" && kind.name == "fair_lock" && other_redisson().starts_with("3.17");
}

answer tried_until_held(peer& waiter, interop_kind const& kind, std::string const& names) {
  auto got = waiter.call("w" + kind.name, "try_lock", kind.name, names);
  for (stopwatch const since; got == "false" && since.passed() < patience;) {
    std::this_thread::sleep_for(20ms);
    got = waiter.call("w" + kind.name, "try_lock", kind.name, names);
  }
  if (got == "true") got.value = "held";
  return got;
}

void crash(interop_world& world, direction const& between) {
  auto& [holder, waiter] = between;
  std::vector<orphan> orphans;
  orphans.reserve(interop_kinds().size());
  for (auto const& kind : interop_kinds()) {
    orphans.push_back({kind, names_for(kind), {}});
    auto& one = orphans.back();
    demand(holder.call("h", "lock", kind.name, one.names), "held", "the holder's lock");
    if (waits_for_ever(waiter, kind)) {
      one.waiting = std::async(std::launch::async,
                               [&one, &next = between.second] { return tried_until_held(next, one.kind, one.names); });
      continue;
    }
    one.waiting = waiter.start("w" + kind.name, "lock", kind.rivals.front(), one.names);
    world.await_waiter(kind, one.names);
  }
  holder.kill();
  auto const killed = clock::now();
  for (auto& one : orphans) one.left = time_left(world, one.names);
  for (auto& one : orphans) {
    cell("4 crash", one.kind.name, between.name(), [&] {
      demand(one.left > 500ms, "the lease had " + std::to_string(one.left.count()) + " ms left when the holder died");
      auto const held = peer::value_in(std::move(one.waiting), "the waiter's lock");
      demand(held, "held", "the waiter's lock");
      auto const late = std::chrono::duration_cast<std::chrono::milliseconds>(held.at - killed) - one.left;
      demand(late >= -rounding, "held " + std::to_string(-late.count()) + " ms before the lease ended");
      demand(late <= soon, "held " + std::to_string(late.count()) + " ms after the lease ended");
      return std::to_string(late.count()) + " ms after the lease";
    });
  }
}

}  // namespace

TEST_CASE("what a killed Redisson held is latchkey's when the lease ends", "[interop][brief]") {
  interop_world world(quick_timeout);
  crash(world, world.redisson_first());
}

TEST_CASE("what a killed latchkey held is Redisson's when the lease ends", "[interop][brief]") {
  interop_world world(quick_timeout);
  crash(world, world.latchkey_first());
}

TEST_CASE("a waiter of Redisson for a fair lock sees the end of a lease that was renewed, but for 3.17",
          "[interop][brief]") {
  auto& world = steady_world();
  auto const name = new_name();
  auto const channel = "redisson_lock__channel:{" + name + "}:" + world.redisson->field("w");
  world.admin.ok("HSET", name, "nobody:1", 1);
  world.admin.ok("PEXPIRE", name, 1500);
  auto waiting = world.redisson->start("w", "lock", "fair_lock", name);
  world.await_waiter({.name = "fair_lock"}, name, *world.redisson, "w");
  world.admin.ok("PEXPIRE", name, 3000);
  bool const came = waiting.wait_for(3s + soon) == std::future_status::ready;
  CHECK(came == !other_redisson().starts_with("3.17"));
  if (!came) world.admin.ok("PUBLISH", channel, 0);
  demand(peer::value_in(std::move(waiting), "the waiter"), "held", "the waiter");
  demand(world.redisson->call("w", "unlock", "fair_lock", name), "released", "the waiter's unlock");
}
