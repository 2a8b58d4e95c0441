// latchkey's plain lock and the clients that it is made for: redis-py, redsync and redlock hold the same locks.
#include <interop/support/interop_world.hpp>
#include <support/catch.hpp>

using namespace latchkey::test;

namespace {

constexpr auto hint = 10s;
constexpr auto soon = 1500ms;
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
  auto const extended = holder.call("w", "extend", "plain_lock", name, long_lease);
  demand(extended, "true", "the extension");
  auto const left = server.integer("PTTL", name);
  demand(left > short_lease.count() && left <= long_lease.count(), "left: " + std::to_string(left));
  auto const got = acquire(other, name, hint, hint);
  demand(got, "true", "the other's wait");
  auto const after = since(extended, got);
  demand(after > long_lease - 50ms && after < long_lease + soon,
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
  demand(since(released, got) < soon, "it took " + std::to_string(since(released, got).count()) + " ms");
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
