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
    if (kind.traits().joint()) return;
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
    if (kind.traits().reenters) {
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

// Check 5: what the other library unlocks by force is lost, and latchkey's holder learns of it.

namespace {

// By a message or the next renewal. At the end of its lease it would be for certain, and later.
constexpr auto noticed_within = quick_timeout / 3 + 1s;
// On a busy machine it may take longer once, and not each time.
constexpr int attempts = 3;

// Kinds that are made of locks are unlocked by force lock by lock: Redisson knows no other way.
void unlock_by_force(peer& by, interop_kind const& kind, std::string const& names) {
  if (!kind.traits().joint()) return demand(by.call("f", "force_unlock", kind.name, names), "true", "force_unlock");
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

std::chrono::milliseconds told_after(interop_world& world, interop_kind const& kind) {
  auto const names = names_for(kind);
  demand(world.ours->call("h", "lock", kind.name, names), "held", "the holder's lock");
  unlock_by_force(*world.redisson, kind, names);
  stopwatch const since;
  demand(world.ours->call("e", "await_loss", kind.name, names, 3 * quick_timeout), "lost", "the holder is told");
  auto const after = since.passed();
  taken_over(world.redisson_first(), kind, names);
  return after;
}

}  // namespace

TEST_CASE("latchkey's holder learns that Redisson unlocked by force", "[interop][brief]") {
  interop_world world(quick_timeout);
  auto const between = world.redisson_first();
  for (auto const& kind : interop_kinds()) {
    cell("5 force", kind.name, between.name(), [&] {
      auto after = told_after(world, kind);
      for (int i = 1; i < attempts && after >= noticed_within; ++i) after = told_after(world, kind);
      auto const told = "told after " + std::to_string(after.count()) + " ms";
      demand(after < noticed_within, told);
      return told;
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

// Check 2: who waits for a lock of the other library is woken by the message of its release.

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
        for (int i = 0; i < rounds; ++i) times.push_back(wake_up(world, between, kind, names_for(kind)));
        return demand_prompt(std::move(times));
      });
    }
  }
}

// Check 3: the watchdog of each library keeps its hold against the other's tries.

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

// Check 7: the waiters of both libraries stand in one queue and are served in the order of their arrival.

namespace {

constexpr int waiters = 8;

struct standing {
  peer& who;
  std::string worker;
  std::future<answer> turn;
};

std::string serve_in_order(interop_world& world, direction const& between) {
  auto& [holder, other] = between;
  auto const name = new_name();
  auto const queue = "redisson_lock_queue:{" + name + "}";
  demand(holder.call("h", "lock", "fair_lock", name), "held", "the first lock");
  std::vector<standing> line;
  for (int i = 0; i < waiters; ++i) {
    // Two of the other library, one of the holder's, and so on: next to both kinds of neighbours.
    auto& who = i % 3 == 2 ? holder : other;
    auto const worker = "w" + std::to_string(i);
    line.push_back({who, worker, who.start(worker, "lock", "fair_lock", name)});
    demand(wait_until([&] { return world.admin.integer("LLEN", queue) == i + 1; }), "waiter " + worker + " is missing");
  }
  demand(holder.call("h", "unlock", "fair_lock", name), "released", "the first unlock");
  for (std::size_t i = 0; i < line.size(); ++i) {
    auto const worker = line[i].worker;
    demand(peer::value_in(std::move(line[i].turn), worker), "held", worker);
    for (std::size_t later = i + 1; later < line.size(); ++later) {
      demand(line[later].turn.wait_for(0s) == std::future_status::timeout, line[later].worker + " before " + worker);
    }
    demand(line[i].who.call(worker, "unlock", "fair_lock", name), "released", "the unlock of " + worker);
  }
  demand(world.admin.integer("EXISTS", queue, "redisson_lock_timeout:{" + name + "}", name) == 0, "something is left");
  return std::to_string(waiters) + " waiters";
}

}  // namespace

TEST_CASE("waiters of both libraries for a fair lock are served in the order of their arrival", "[interop][brief]") {
  auto& world = steady_world();
  for (auto const& between : {world.redisson_first(), world.latchkey_first()}) {
    cell("7 order", "fair_lock", between.name(), [&] { return serve_in_order(world, between); });
  }
}

// Check 4: when a holder is killed, the other library gets the lock when the lease ends, and not before.

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
