// Where latchkey differs from Redisson on purpose: each difference by itself, and what Redisson's side sees of it.
#include <interop/support/interop_world.hpp>
#include <interop/support/trace.hpp>
#include <support/catch.hpp>

using namespace latchkey::test;

namespace {

// The time to live of the lock after these calls, `operation arguments` each, by one worker.
long long left_after(peer& who, std::string const& kind, std::string const& name,
                     std::vector<std::string> const& calls) {
  for (auto const& one : calls) {
    auto const space = one.find(' ');
    auto const dot = one.find('.');
    auto const made = dot == std::string::npos ? kind : one.substr(0, dot);
    auto const operation =
        one.substr(dot == std::string::npos ? 0 : dot + 1,
                   space == std::string::npos ? space : space - (dot == std::string::npos ? 0 : dot + 1));
    auto const got = space == std::string::npos ? who.call("d", operation, made, name)
                                                : who.call("d", operation, made, name, one.substr(space + 1));
    demand(got.ok, one + ": " + to_string(got));
  }
  return steady_world().admin.integer("PTTL", name);
}

struct seen {
  long long redisson;
  long long latchkey;
};

seen by_both(std::string const& kind, std::vector<std::string> const& calls) {
  auto& world = steady_world();
  return {left_after(*world.redisson, kind, new_name(), calls), left_after(*world.ours, kind, new_name(), calls)};
}

bool near(long long left, long long wanted) { return left <= wanted && left > wanted - 2000; }

}  // namespace

TEST_CASE("a re-entry with a shorter lease cuts Redisson's lease and not latchkey's", "[interop]") {
  auto const left = by_both("lock", {"lock 20000", "lock 5000"});
  CHECK(near(left.redisson, 5000));
  CHECK(near(left.latchkey, 20'000));
}

TEST_CASE("a release that leaves holds cuts Redisson's lease to the latest and not latchkey's", "[interop]") {
  // Redisson's lock object carries the lease of whoever took it last; a new object carries the watchdog's.
  auto const left = by_both("lock", {"lock 60000", "lock 5000", "unlock"});
  CHECK(left.redisson <= 30'000);
  CHECK(near(left.latchkey, 60'000));
}

TEST_CASE("a re-entry of a write lock adds its lease to Redisson's and not to latchkey's", "[interop]") {
  auto const left = by_both("write_lock", {"lock", "lock"});
  CHECK(near(left.redisson, 60'000));
  CHECK(near(left.latchkey, 30'000));
}

TEST_CASE("a read unlock in write mode cuts Redisson's lease to those of its reads and not latchkey's", "[interop]") {
  auto const left =
      by_both("write_lock", {"lock 60000", "read_lock.lock 5000", "read_lock.lock 5000", "read_lock.unlock"});
  CHECK(near(left.redisson, 5000));
  CHECK(near(left.latchkey, 60'000));
}

TEST_CASE("an unlock is one command of latchkey and two of Redisson, with a key of its own", "[interop]") {
  auto& world = steady_world();
  monitor listening(*world.servers.front());
  auto const commands = [&](peer& who, std::size_t at_least) {
    auto const name = new_name();
    demand(who.call("d", "lock", "lock", name), "held", "lock");
    listening.read({});
    demand(who.call("d", "unlock", "lock", name), "released", "unlock");
    std::vector<std::string> sent;
    auto const have_come = [&] {
      for (auto const& line : listening.read({})) {
        if (!line.starts_with(' ') && line.find(name) != std::string::npos) sent.push_back(line);
      }
      return sent.size() >= at_least;
    };
    // Redisson's second command comes when its call has returned; one too many would, too.
    wait_until(have_come);
    std::this_thread::sleep_for(100ms);
    have_come();
    return sent;
  };
  auto const by_redisson = commands(*world.redisson, 2);
  REQUIRE(by_redisson.size() == 2);
  CHECK(by_redisson[1].starts_with("del redisson_unlock_latch"));
  auto const by_latchkey = commands(*world.ours, 1);
  REQUIRE(by_latchkey.size() == 1);
  CHECK(by_latchkey[0].find("unlock_latch") == std::string::npos);
}

TEST_CASE("anybody may unlock a fair lock that is free with Redisson, and nobody with latchkey", "[interop]") {
  auto& world = steady_world();
  CHECK(world.redisson->call("d", "unlock", "fair_lock", new_name()) == "released");
  CHECK_FALSE(world.ours->call("d", "unlock", "fair_lock", new_name()).ok);
}

TEST_CASE("a reader who asks for the write lock is refused by Redisson and warned by latchkey", "[interop]") {
  auto& world = steady_world();
  for (auto* who : {world.redisson.get(), world.ours.get()}) {
    auto const name = new_name();
    demand(who->call("d", "lock", "read_lock", name), "held", "the read lock");
    auto const got = who->call("d", "try_lock", "write_lock", name);
    CHECK(got.ok == (who == world.redisson.get()));
    CHECK(got.value != "true");
    demand(who->call("d", "unlock", "read_lock", name), "released", "the read lock");
  }
}

TEST_CASE("latchkey tells waiters of a downgrade, and Redisson's readers come in at once", "[interop]") {
  auto& world = steady_world();
  auto const name = new_name();
  demand(world.ours->call("d", "lock", "write_lock", name), "held", "the write lock");
  demand(world.ours->call("d", "lock", "read_lock", name), "held", "the read lock");
  auto waiting = world.redisson->start("w", "lock", "read_lock", name);
  world.await_waiter({.name = "read_lock"}, name, *world.redisson, "w");
  demand(world.ours->call("d", "unlock", "write_lock", name), "released", "the write lock");
  CHECK(peer::value_in(std::move(waiting), "the reader", 2s) == "held");
  demand(world.redisson->call("w", "unlock", "read_lock", name), "released", "the reader");
  demand(world.ours->call("d", "unlock", "read_lock", name), "released", "the read lock");
}

TEST_CASE("a hold of latchkey whose lease ended is given back, so that no field of it stays behind", "[interop]") {
  auto& world = steady_world();
  auto const name = new_name();
  demand(world.redisson->call("d", "lock", "read_lock", name), "held", "Redisson's read lock");
  demand(world.ours->call("d", "lock", "read_lock", name, 500), "held", "latchkey's read lock");
  auto const field = world.ours->field("d");
  CHECK(world.admin.integer("HEXISTS", name, field) == 1);
  CHECK(wait_until([&] { return world.admin.integer("HEXISTS", name, field) == 0; }));
  CHECK(world.redisson->call("d", "hold_count", "read_lock", name) == "1");
  demand(world.redisson->call("d", "unlock", "read_lock", name), "released", "Redisson's read lock");
}

TEST_CASE("a waiter of latchkey for a fair lock that looks again has its time written anew", "[interop]") {
  auto& world = steady_world();
  auto const rise = [&](peer& waiter) {
    auto const name = new_name();
    auto const scores = "redisson_lock_timeout:{" + name + "}";
    auto const field = waiter.field("w");
    auto const score = [&] { return std::stoll("0" + world.admin.command("ZSCORE", scores, field).text); };
    demand(world.redisson->call("d", "lock", "fair_lock", name, 5000), "held", "the lock");
    auto waiting = waiter.start("w", "lock", "fair_lock", name);
    demand(wait_until([&] { return score() > 0; }), "nobody waits");
    auto const first = score();
    demand(world.redisson->call("d", "lock", "fair_lock", name, 20'000), "held", "the lock for longer");
    bool const risen = wait_until([&] { return score() > first; }, 2s);
    auto const by = score() - first;
    demand(risen == (by > 0), "the score fell");
    demand(world.redisson->call("d", "unlock", "fair_lock", name), "released", "the unlock");
    demand(world.redisson->call("d", "unlock", "fair_lock", name), "released", "the last unlock");
    demand(peer::value_in(std::move(waiting), "the waiter"), "held", "the waiter");
    demand(waiter.call("w", "unlock", "fair_lock", name), "released", "the waiter's unlock");
    return by;
  };
  CHECK(rise(*world.redisson) == 0);
  auto const by = rise(*world.ours);
  CHECK(by >= 15'000);
  CHECK(by < 16'000);
}

TEST_CASE("many locks that latchkey takes by one command are each busy to Redisson", "[interop]") {
  constexpr int locks = 60;
  auto& world = steady_world();
  monitor listening(*world.servers.front());
  std::vector<std::string> names;
  std::vector<std::future<answer>> asked;
  for (int i = 0; i < locks; ++i) {
    names.push_back(new_name());
    asked.push_back(world.ours->start("many" + std::to_string(i), "lock", "lock", names.back()));
  }
  for (auto& one : asked) CHECK(peer::value_in(std::move(one), "one of many") == "held");
  long commands = 0;
  for (auto const& line : listening.read({})) commands += line.starts_with("evalsha ") || line.starts_with("eval ");
  INFO(commands << " commands for " << locks << " locks");
  CHECK(commands < locks);
  for (int i = 0; i < locks; ++i) {
    CHECK(world.redisson->call("d", "try_lock", "lock", names[static_cast<std::size_t>(i)]) == "false");
    CHECK(world.ours->call("many" + std::to_string(i), "unlock", "lock", names[static_cast<std::size_t>(i)]) ==
          "released");
    CHECK(world.redisson->call("d", "try_lock", "lock", names[static_cast<std::size_t>(i)]) == "true");
  }
}

TEST_CASE("a lock that latchkey hands to its own next caller is never free, and Redisson's waiter comes after",
          "[interop]") {
  auto& world = steady_world();
  auto const name = new_name();
  auto const held = [&](std::string const& worker) {
    return world.admin.integer("HEXISTS", name, world.ours->field(worker)) == 1;
  };
  demand(world.ours->call("h1", "lock", "lock", name), "held", "the first caller's lock");
  auto theirs = world.redisson->start("w", "lock", "lock", name);
  world.await_waiter({.name = "lock"}, name);
  auto next = world.ours->start("h2", "lock", "lock", name);
  // What waits inside the client shows nowhere else.
  std::this_thread::sleep_for(1s);
  monitor listening(*world.servers.front());
  demand(world.ours->call("h1", "unlock", "lock", name), "released", "the first caller's unlock");
  demand(peer::value_in(std::move(next), "the next caller"), "held", "the next caller's lock");
  CHECK(held("h2"));
  CHECK_FALSE(held("h1"));
  int told = 0;
  for (auto const& line : listening.read({})) told += line.starts_with("  publish");
  CHECK(told == 0);
  CHECK(theirs.wait_for(0s) == std::future_status::timeout);
  CHECK(world.redisson->call("d", "hold_count", "lock", name) == "0");
  demand(world.ours->call("h2", "unlock", "lock", name), "released", "the next caller's unlock");
  CHECK(peer::value_in(std::move(theirs), "Redisson's waiter", 2s) == "held");
  demand(world.redisson->call("w", "unlock", "lock", name), "released", "Redisson's unlock");
}

TEST_CASE("what latchkey remembers beside a semaphore ends by itself, and Redisson's counts do not show it",
          "[interop]") {
  auto& world = steady_world();
  auto const name = new_name();
  demand(world.ours->call("d", "try_set_permits", "semaphore", name, 3), "true", "set");
  auto waiting = world.ours->start("w", "acquire", "semaphore", name, 5);
  world.await_waiter({.name = "semaphore"}, name);
  demand(world.ours->call("d", "release", "semaphore", name, 1), "released", "a permit more");
  CHECK(world.redisson->call("d", "available_permits", "semaphore", name) == "4");
  auto const own = [&] { return world.admin.ok("KEYS", "latchkey_*{" + name + "}*").elements; };
  auto const keys = own();
  CHECK_FALSE(keys.empty());
  for (auto const& key : keys) {
    INFO(key.text);
    auto const left = world.admin.integer("PTTL", key.text);
    CHECK((left == -2 || (left > 0 && left <= 30'000)));
  }
  demand(world.redisson->call("d", "release", "semaphore", name, 1), "released", "the last permit, by Redisson");
  CHECK(peer::value_in(std::move(waiting), "the waiter") == "acquired");
  CHECK(world.redisson->call("d", "available_permits", "semaphore", name) == "0");
}
