// Checks 1, 2, 4 and 7 for what nobody owns: the two semaphores and the latch.
#include <interop/support/interop_world.hpp>
#include <support/catch.hpp>

#include <algorithm>

using namespace latchkey::test;

namespace {

std::string permit_of(peer& who, std::string const& name, std::chrono::milliseconds lease = 5s) {
  auto const got = who.call("p", "try_acquire", "permit_semaphore", name, 0, lease);
  demand(got.ok && got.value.size() == 32, "a permit: " + to_string(got));
  return got.value;
}

void semaphores_exclude(direction const& between, std::string const& name) {
  auto& [a, b] = between;
  demand(a.call("p", "try_set_permits", "semaphore", name, 2), "true", "set by the first");
  demand(b.call("p", "try_set_permits", "semaphore", name, 9), "false", "set by the second");
  demand(a.call("p", "try_acquire", "semaphore", name, 2, 0), "true", "the first takes all");
  demand(b.call("p", "try_acquire", "semaphore", name, 1, 0), "false", "the second takes one more");
  demand(b.call("p", "available_permits", "semaphore", name), "0", "left, says the second");
  demand(b.call("p", "release", "semaphore", name, 1), "released", "the second gives one");
  demand(a.call("p", "available_permits", "semaphore", name), "1", "left, says the first");
  demand(a.call("p", "drain_permits", "semaphore", name), "1", "drained by the first");
}

void permits_exclude(direction const& between, std::string const& name) {
  auto& [a, b] = between;
  demand(a.call("p", "try_set_permits", "permit_semaphore", name, 2), "true", "set by the first");
  auto const first = permit_of(a, name);
  auto const second = permit_of(b, name);
  demand(b.call("p", "try_acquire", "permit_semaphore", name, 0, 5000), "null", "a third permit");
  demand(b.call("p", "acquired_permits", "permit_semaphore", name), "2", "acquired, says the second");
  demand(b.call("p", "update_lease_time", "permit_semaphore", name, first, 9000), "true", "a longer lease");
  demand(b.call("p", "try_release", "permit_semaphore", name, first), "true", "the second releases the first's");
  demand(a.call("p", "try_release", "permit_semaphore", name, first), "false", "the first releases it again");
  demand(a.call("p", "available_permits", "permit_semaphore", name), "1", "left, says the first");
  demand(a.call("p", "try_release", "permit_semaphore", name, second), "true", "the first releases the second's");
}

void latches_agree(direction const& between, std::string const& name) {
  auto& [a, b] = between;
  demand(a.call("p", "try_set_count", "count_down_latch", name, 2), "true", "set by the first");
  demand(b.call("p", "try_set_count", "count_down_latch", name, 9), "false", "set by the second");
  demand(b.call("p", "count", "count_down_latch", name), "2", "the count, says the second");
  demand(b.call("p", "wait_for", "count_down_latch", name, 30), "false", "a wait in vain");
  demand(b.call("p", "count_down", "count_down_latch", name), "counted", "count down");
  demand(a.call("p", "count", "count_down_latch", name), "1", "the count, says the first");
  demand(a.call("p", "count_down", "count_down_latch", name), "counted", "count down");
  demand(b.call("p", "wait_for", "count_down_latch", name, 0), "true", "a wait at zero");
}

struct kind_of_permit {
  std::string name;
  void (*excludes)(direction const&, std::string const&);
  std::string take;  // arguments of the waiting call
};

std::vector<kind_of_permit> const kinds{{"semaphore", semaphores_exclude, "try_acquire"},
                                        {"permit_semaphore", permits_exclude, "try_acquire"},
                                        {"count_down_latch", latches_agree, "wait_for"}};

// From the call that gives to the return of the waiter.
std::chrono::microseconds wake_up(interop_world& world, direction const& between, std::string const& kind) {
  auto& [giver, waiter] = between;
  auto const name = new_name();
  std::string permit;
  giver.call("p", kind == "count_down_latch" ? "try_set_count" : "try_set_permits", kind, name, 1);
  if (kind == "semaphore") giver.call("p", "try_acquire", kind, name, 1, 0);
  if (kind == "permit_semaphore") permit = permit_of(giver, name, 30s);
  auto waiting = kind == "semaphore"          ? waiter.start("w", "try_acquire", kind, name, 1, 10'000)
                 : kind == "permit_semaphore" ? waiter.start("w", "try_acquire", kind, name, 10'000, 5000)
                                              : waiter.start("w", "wait_for", kind, name, 10'000);
  world.await_waiter({.name = kind}, name);
  auto const given = clock::now();
  if (kind == "semaphore") giver.call("p", "release", kind, name, 1);
  if (kind == "permit_semaphore") giver.call("p", "try_release", kind, name, permit);
  if (kind == "count_down_latch") giver.call("p", "count_down", kind, name);
  auto const got = peer::value_in(std::move(waiting), "the waiter");
  demand(got.ok && got.value != "false" && got.value != "null", "the waiter: " + to_string(got));
  return std::chrono::duration_cast<std::chrono::microseconds>(got.at - given);
}

}  // namespace

TEST_CASE("permits and counts are the same to both libraries", "[interop]") {
  auto& world = steady_world();
  for (auto const& kind : kinds) {
    for (auto const& between : {world.redisson_first(), world.latchkey_first()}) {
      cell("1 exclusion", kind.name, between.name(), [&] {
        kind.excludes(between, new_name());
        return std::string();
      });
      cell("1 odd names", kind.name, between.name(), [&] {
        for (auto const& server : world.servers) server->admin().ok("FLUSHALL");
        for (auto const& name : odd_names()) kind.excludes(between, percent_encoded(name));
        return std::to_string(odd_names().size()) + " names";
      });
    }
  }
}

TEST_CASE("a permit that comes free wakes a waiter of the other library at once", "[interop]") {
  auto& world = steady_world();
  for (auto const& kind : kinds) {
    for (auto const& between : {world.redisson_first(), world.latchkey_first()}) {
      cell("2 wake-up", kind.name, between.name(), [&] {
        std::vector<std::chrono::microseconds> times;
        for (int i = 0; i < 11; ++i) times.push_back(wake_up(world, between, kind.name));
        return demand_prompt(std::move(times));
      });
    }
  }
}

TEST_CASE("a permit whose holder was killed comes back when its lease ends", "[interop]") {
  interop_world world(quick_timeout);
  auto const check = [&](direction const& between, peer& second_holder) {
    cell("4 crash", "permit_semaphore", between.name(), [&] {
      auto const name = new_name();
      demand(second_holder.call("p", "try_set_permits", "permit_semaphore", name, 1), "true", "set");
      auto const asked = clock::now();
      auto const got = between.first.call("p", "try_acquire", "permit_semaphore", name, 0, 2000);
      demand(got.value.size() == 32, "the holder's permit: " + to_string(got));
      between.first.kill();
      auto const next = between.second.call("w", "try_acquire", "permit_semaphore", name, 10'000, 5000);
      auto const after = std::chrono::duration_cast<std::chrono::milliseconds>(next.at - asked);
      demand(next.value.size() == 32, "the waiter's permit: " + to_string(next));
      demand(after >= 1990ms && after < 5s, "the permit came back after " + std::to_string(after.count()) + " ms");
      return std::to_string(after.count()) + " ms";
    });
  };
  check(world.redisson_first(), *world.ours);
  // What a process holds ends with it, so the other direction takes a Redisson of its own.
  auto const redisson = redisson_peer(quick_timeout, world.uris());
  check({*world.ours, *redisson}, *redisson);
}

TEST_CASE("what nobody owns has no watchdog and no unlock by force", "[interop]") {
  for (std::string const kind : {"semaphore", "permit_semaphore", "count_down_latch"}) {
    no_cell("3 watchdog", kind, "Redisson renews no permit");
    no_cell("5 force", kind, "Redisson has no such call");
  }
  no_cell("4 crash", "semaphore", "its permits have no leases");
  no_cell("4 crash", "count_down_latch", "nobody holds it");
  CHECK_FALSE(steady_world().redisson->call("p", "force_unlock", "semaphore", "none").ok);
}

// latchkey's plain lock and the clients that it is made for: redis-py, redsync and redlock hold the same locks.

namespace {

constexpr auto hint = 10s;
constexpr auto promptly = 1500ms;
constexpr auto short_lease = 600ms;
constexpr auto long_lease = 1500ms;

answer acquire(peer& who, std::string const& name, std::chrono::milliseconds wait, std::chrono::milliseconds lease) {
  return who.call("w", "acquire", "plain_lock", name, wait, lease);
}

std::chrono::milliseconds since(answer const& one, answer const& later) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(later.at - one.at);
}

void exclude(direction const& between, std::string const& name) {
  auto& [holder, other] = between;
  demand(acquire(holder, name, 0ms, hint), "true", "the first try");
  demand(acquire(other, name, 0ms, hint), "false", "the other's try");
  demand(acquire(other, name, 150ms, hint), "false", "the other's wait in vain");
  demand(holder.call("w", "release", "plain_lock", name), "released", "the release");
  demand(acquire(other, name, 0ms, hint), "true", "the other's try when it is free");
  demand(!(holder.call("w", "release", "plain_lock", name) == "released"), "released what the other holds");
  demand(acquire(holder, name, 0ms, hint), "false", "the try while the other holds it");
  demand(other.call("w", "release", "plain_lock", name), "released", "the other's release");
}

// The hold outlives its first lease, and ends with the second.
std::string extend(direction const& between, raw_redis& server) {
  auto& [holder, other] = between;
  auto const name = new_name();
  demand(acquire(holder, name, 0ms, short_lease), "true", "the first try");
  auto const asked = clock::now();
  auto const extended = holder.call("w", "extend", "plain_lock", name, long_lease);
  demand(extended, "true", "the extension");
  auto const left = server.integer("PTTL", name);
  demand(left > short_lease.count() && left <= long_lease.count(), "left: " + std::to_string(left));
  auto const got = acquire(other, name, hint, hint);
  demand(got, "true", "the other's wait");
  auto const after = since(extended, got);
  demand(got.at - asked > long_lease - 50ms && after < long_lease + promptly,
         "the other got it after " + std::to_string(after.count()) + " ms");
  demand(!(holder.call("w", "extend", "plain_lock", name, long_lease) == "true"), "extended what the other holds");
  demand(other.call("w", "release", "plain_lock", name), "released", "the other's release");
  return std::to_string(after.count()) + " ms";
}

// A waiter polls, for want of a message.
std::string await(direction const& between) {
  auto& [holder, waiter] = between;
  auto const name = new_name();
  demand(acquire(holder, name, 0ms, hint), "true", "the first try");
  auto waiting = waiter.start("w", "acquire", "plain_lock", name, hint, hint);
  demand(waiting.wait_for(400ms) == std::future_status::timeout, "the waiter did not wait");
  auto const released = holder.call("w", "release", "plain_lock", name);
  demand(released, "released", "the release");
  auto const got = peer::value_in(std::move(waiting), "the waiter");
  demand(got, "true", "the waiter");
  demand(since(released, got) < promptly, "it took " + std::to_string(since(released, got).count()) + " ms");
  demand(waiter.call("w", "release", "plain_lock", name), "released", "the waiter's release");
  return std::to_string(since(released, got).count()) + " ms";
}

void check(std::string const& library) {
  redis_server server({.tcp = true});
  auto admin = server.admin();
  auto const ours = latchkey_peer(quick_timeout, {server.uri()});
  auto const theirs = plain_peer(library, server.uri());
  cell("version", library, "", [&] { return theirs->id().substr(library.size() + 1); });
  for (auto const& between : {direction{*theirs, *ours}, direction{*ours, *theirs}}) {
    auto const name = between.name();
    cell("exclusion", library, name, [&] {
      exclude(between, new_name());
      return std::string();
    });
    cell("odd names", library, name, [&] {
      for (auto const& odd : odd_names()) exclude(between, percent_encoded(odd));
      return std::to_string(odd_names().size()) + " names";
    });
    cell("waiting", library, name, [&] { return await(between); });
    cell("extension", library, name, [&] { return extend(between, admin); });
  }
  cell("watchdog", library, "latchkey > " + library, [&] {
    auto const name = new_name();
    demand(ours->call("w", "acquire", "plain_lock", name, 0, -1), "true", "latchkey's try");
    demand(acquire(*theirs, name, quick_timeout * 3 / 2, hint), "false", "the other's wait for longer than a lease");
    demand(ours->call("w", "release", "plain_lock", name), "released", "latchkey's release");
    return std::string();
  });
}

}  // namespace

TEST_CASE("redis-py's Lock and latchkey's plain lock are one", "[interop]") { check("redis-py"); }

TEST_CASE("redsync's mutex and latchkey's plain lock are one", "[interop]") { check("redsync"); }

TEST_CASE("redlock's lock and latchkey's plain lock are one", "[interop]") { check("redlock"); }
