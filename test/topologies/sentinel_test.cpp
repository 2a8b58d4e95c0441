// A client whose server is found by sentinels. The numbers are those of docs/topology-cases.md.
#include <latchkey/latchkey.hpp>
#include <support/catch.hpp>
#include <support/configs.hpp>
#include <support/errors.hpp>
#include <support/sentinel_set.hpp>

#include <boost/asio/use_future.hpp>

#include <algorithm>
#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>

using namespace latchkey;
using namespace latchkey::test;

namespace {

// Empty from one that closes its connections, as it does when it changes its role.
std::string role_of(redis_server const& node) {
  try {
    return node.admin().ok("ROLE").elements.at(0).text;
  } catch (std::exception const&) {
    return {};
  }
}

// One set for all tests that leave it as it was.
sentinel_set& calm_set() {
  static sentinel_set one({.down_after = std::chrono::minutes(1)});
  return one;
}

config sentinel_config(event_log const& log) {
  config settings = steady_config(log);
  settings.connect_timeout = 1s * slowness;
  settings.timeout = 1s * slowness;
  settings.close_timeout = patience;  // so long a release waits for its answer
  return settings;
}

// A set of its own, a client and what it tells.
struct failover_world {
  explicit failover_world(config const& given = {}, sentinel_set::wishes const& what = {}) : servers(what) {
    config settings = sentinel_config(log);
    settings.lock_watchdog_timeout = given.lock_watchdog_timeout;
    settings.min_synced_replicas = given.min_synced_replicas;
    settings.retry_attempts = 20;  // nor is its number of attempts to be over before the failover is
    own.emplace(servers.uri(), settings);
    own->connect(patience);
  }

  std::string field(latchkey::owner who) const { return own->id() + ":" + to_string(who); }
  // Waits until what was done on the first node is on the replicas, too.
  void replicated() { await_replication(servers.node(0)); }
  bool has(std::size_t node, std::string_view lock) { return servers.node(node).admin().integer("EXISTS", lock) == 1; }
  std::size_t succeed() {
    servers.await_successor(0);
    return promoted();
  }
  // So that whichever sentinel a client asks has told it so.
  std::size_t succeed_by_all() {
    servers.await_successor(0, 3);
    return promoted();
  }
  std::size_t promoted() {
    for (std::size_t i = 1; i < 3; ++i)
      if (role_of(servers.node(i)) == "master") return i;
    FAIL("nobody is master");
    return 0;
  }

  event_log log;
  sentinel_set servers;
  std::optional<client> own;
};

std::uint16_t dead_port() { return free_port(); }

}  // namespace

TEST_CASE("a lock works behind sentinels, on both lanes", "[topologies]") {
  event_log log;
  client own(calm_set().uri(), sentinel_config(log));
  auto const lock = own.get_lock(new_name());
  for (int i = 0; i < 3; ++i) CHECK(lock.acquire({.wait = patience}).release() == release_result::released);
  auto const held = lock.acquire({.wait = patience});
  REQUIRE(held.held());
  CHECK(calm_set().node(0).admin().integer("EXISTS", lock.name()) == 1);
  auto const moved = log.last(event_type::topology_changed);
  CHECK(moved.text == "slots 0-16383: to 127.0.0.1:" + std::to_string(calm_set().node(0).where().port) + ", epoch 0");
}

TEST_CASE("case t1: sentinels that are gone cost no more than an attempt", "[topologies][case-t1]") {
  event_log log;
  auto const dead = "127.0.0.1:" + std::to_string(dead_port()) + ",127.0.0.1:" + std::to_string(dead_port()) + ",";
  client own(calm_set().uri(dead), sentinel_config(log));
  stopwatch time;
  CHECK(own.get_lock(new_name()).acquire({.wait = patience}).held());
  CHECK(time.passed() < 1050ms * slowness);
}

TEST_CASE("case t2: no sentinel answers", "[topologies][case-t2]") {
  event_log log;
  client own("redis-sentinel://127.0.0.1:" + std::to_string(dead_port()) + "/m", sentinel_config(log));
  auto const lock = own.get_lock(new_name());
  auto const error = thrown_by([&] { return lock.acquire({.wait = 300ms}); });
  CHECK(error.code() == errc::connect_failed);
  CHECK(error.server_text().find("sentinel 127.0.0.1:") != std::string::npos);
  CHECK(error_of([&] { return lock.try_lock(); }) == errc::connect_failed);
  CHECK(log.wait_for(event_type::connect_failed));
}

TEST_CASE("case t3: a master that no sentinel knows is named at once", "[topologies][case-t3]") {
  event_log log;
  client own(calm_set().uri({}, "/other"), sentinel_config(log));
  stopwatch time;
  auto const error = thrown_by([&] { return own.get_lock(new_name()).acquire(); });
  CHECK(error.code() == errc::no_master);
  CHECK(error.transient());
  CHECK(error.server_text().find("no master named other") != std::string::npos);
  CHECK(time.passed() < 1s * slowness);
}

TEST_CASE("case t4: a sentinel that is stopped delays a client little", "[topologies][case-t4]") {
  sentinel_set& servers = calm_set();
  event_log log;
  auto const first = [&] {
    client own(servers.uri(), sentinel_config(log));
    stopwatch time;
    CHECK(own.get_lock(new_name()).acquire({.wait = patience}).held());
    return time.passed();
  };
  auto const usual = first();
  servers.sentinel(0).pause();
  auto const delayed = first();
  servers.sentinel(0).resume();
  CHECK(delayed < usual + bound(150ms, 800ms));
}

TEST_CASE("case t5: what a stale sentinel says is not believed", "[topologies][case-t5]") {
  // It still names the first node, which is a replica by now.
  sentinel_set servers;
  servers.sentinel(0).pause();
  REQUIRE(wait_until([&] {
    auto const said = servers.sentinel(1).admin().command("SENTINEL", "FAILOVER", "m");
    return !said.is_error() || said.text.starts_with("INPROG");
  }));
  REQUIRE(wait_until([&] { return servers.sentinel(2).master() != servers.node(0).where().port; }));
  REQUIRE(wait_until([&] { return role_of(servers.node(0)) == "slave"; }));
  // A sentinel alone learns nothing new from the others.
  sentinel_process stale(servers.node(0).where().port, 3, {});
  event_log log;
  config settings = sentinel_config(log);
  client own(servers.uri("127.0.0.1:" + std::to_string(stale.port()) + ","), settings);
  stopwatch time;
  auto const lock = own.get_lock(new_name());
  auto const held = lock.acquire({.wait = patience});
  CHECK(held.held());
  CHECK(time.passed() < 3s * slowness);
  CHECK(role_of(servers.node(0)) == "slave");
  servers.sentinel(0).resume();
}

TEST_CASE("cases t6, t7: sentinels and servers have passwords of their own", "[topologies][case-t6][case-t7]") {
  sentinel_set servers({.down_after = std::chrono::minutes(1),
                        .server_arguments = {"--user", "app", "on", ">app-secret", "~*", "&*", "+@all"},
                        .sentinel_lines = {"user watcher on >watcher-secret &* +@all"}});
  event_log log;
  auto const uri = [&](std::string_view user, std::string_view words) {
    std::string made = servers.uri({}, "/m?sentinel_user=watcher&sentinel_password=" + std::string(words));
    return made.insert(made.find("//") + 2, std::string(user) + '@');
  };
  {
    client own(uri("app:app-secret", "watcher-secret"), sentinel_config(log));
    CHECK(own.get_lock(new_name()).acquire({.wait = patience}).held());
  }
  {
    config settings = sentinel_config(log);
    settings.username = "app";
    settings.password = "app-secret";
    settings.sentinel_username = "watcher";
    settings.sentinel_password = "watcher-secret";
    client own(servers.uri(), settings);
    CHECK(own.get_lock(new_name()).acquire({.wait = patience}).held());
  }
  {
    client own(uri("app:app-secret", "wrong"), sentinel_config(log));
    auto const error = thrown_by([&] { return own.get_lock(new_name()).acquire(); });
    CHECK(error.code() == errc::auth_failed);
    CHECK(error.server_text().find("WRONGPASS") != std::string::npos);
  }
  {
    client own(uri("app:wrong", "watcher-secret"), sentinel_config(log));
    auto const error = thrown_by([&] { return own.get_lock(new_name()).acquire(); });
    CHECK(error.code() == errc::auth_failed);
  }
  CHECK(log.words().find("secret") == std::string::npos);
}

TEST_CASE("case t11: addresses that sentinels know can be mapped", "[topologies][case-t11]") {
  event_log log;
  config settings = sentinel_config(log);
  auto const master = calm_set().node(0).where().port;
  settings.nat_map = [master](std::string const& host, std::uint16_t port) {
    return std::pair(port == master ? std::string("localhost") : host, port);
  };
  client own(calm_set().uri(), settings);
  CHECK(own.get_lock(new_name()).acquire({.wait = patience}).held());
  CHECK(log.last(event_type::topology_changed).text.find("to localhost:") != std::string::npos);
}

TEST_CASE("case t21: the master is killed under a hold, which is kept", "[topologies][case-t21]") {
  failover_world w({.lock_watchdog_timeout = 6s * slowness});
  auto const lock = w.own->get_lock(new_name());
  stopwatch age;
  auto held = lock.acquire();
  w.replicated();
  w.servers.node(0).kill();
  std::size_t const next = w.succeed_by_all();
  stopwatch since;
  if (age.passed() > 5s * slowness) {
    WARN("the election took almost as long as the lease");
    return;
  }
  CHECK(lives_longer(w.servers.node(next), lock.name(), 5s * slowness));
  CHECK(since.passed() < bound(300ms, 2s));
  CHECK(w.log.wait_for(event_type::topology_changed, 2));
  CHECK(held.held());
  CHECK(w.has(next, lock.name()));
  CHECK(held.release() == release_result::released);
  CHECK_FALSE(w.has(next, lock.name()));
  CHECK(lock.acquire({.wait = patience}).held());
  CHECK(w.log.count_after(*w.own, event_type::lost) == 0);
}

TEST_CASE("case t22: a grant that was not replicated is lost with its master, and its holder told",
          "[topologies][case-t22]") {
  for (bool const fixed : {false, true}) {
    INFO(fixed);
    failover_world w;
    auto const lock = w.own->get_lock(new_name());
    w.servers.cut_replication(1);
    w.servers.cut_replication(2);
    auto held = fixed ? lock.acquire({.lease = 1min}) : lock.acquire();
    w.servers.node(0).kill();
    w.succeed_by_all();
    stopwatch since;
    CHECK(w.log.wait_for(event_type::lost, lock.name()));
    CHECK(since.passed() < bound(300ms, 2s));
    CHECK_FALSE(held.held());
    CHECK(lock.acquire({.wait = patience}).held());
  }
}

TEST_CASE("case t25: an acquire that waits in a stopped master is granted by the next one", "[topologies][case-t25]") {
  // With -1 by all replicas: of the next master the old one is one.
  int const needed = GENERATE(0, -1);
  INFO(needed);
  failover_world w({.min_synced_replicas = needed});
  auto const lock = w.own->get_lock(new_name());
  REQUIRE(lock.acquire().release() == release_result::released);
  w.replicated();
  w.servers.node(0).pause();
  auto late = lock.async_acquire({.wait = 4 * patience}, asio::use_future);
  std::size_t const next = w.succeed();
  lease held;
  if (needed == 0) held = late.get();
  w.servers.node(0).resume();
  if (needed != 0) {
    held = late.get();
    CHECK(role_of(w.servers.node(0)) == "slave");  // not before, though it would have confirmed a grant of its own
  }
  REQUIRE(held.held());
  CHECK(w.has(next, lock.name()));
  // It answers as a master until it is told; what waited in it runs, or not, and nobody here believes it.
  REQUIRE(wait_until([&] { return role_of(w.servers.node(0)) == "slave"; }, 30s));
  REQUIRE(wait_until([&] { return w.has(0, lock.name()); }));
  CHECK(held.held());
  CHECK(held.release() == release_result::released);
  CHECK(w.log.count_after(*w.own, event_type::lost) == 0);
}

TEST_CASE("case t28: a failover with the old master alive leaves nobody there", "[topologies][case-t28]") {
  failover_world w({.lock_watchdog_timeout = 6s});
  auto const lock = w.own->get_lock(new_name());
  auto held = lock.acquire();
  w.replicated();
  w.servers.begin_fail_over();
  REQUIRE(wait_until([&] { return role_of(w.servers.node(1)) == "master" || role_of(w.servers.node(2)) == "master"; }));
  stopwatch time;
  std::size_t const next = w.promoted();
  REQUIRE(w.log.wait_for(event_type::topology_changed, 2));
  CHECK(time.passed() < 2200ms * slowness);
  auto const calls = w.servers.node(0).admin().script_calls();
  auto const renewals = w.own->snapshot().renewals;
  CHECK(held.held());
  // It takes commands for ten seconds more, and then ends its connections.
  CHECK(wait_until([&] { return w.servers.node(0).admin().clients("name=latchkey:") == 0; }, 1s * slowness));
  CHECK(wait_until([&] { return w.own->snapshot().renewals > renewals + 1; }));
  auto const waiter = w.own->get_lock(lock.name());
  auto second = std::async(std::launch::async, [&] { return waiter.acquire({.wait = patience}); });
  CHECK(held.release() == release_result::released);
  CHECK(second.get().held());  // a lease that is dropped right here, and released in the background
  CHECK(wait_until([&] { return !w.has(next, lock.name()); }));
  CHECK(w.servers.node(0).admin().script_calls() == calls);
  CHECK(w.servers.node(0).admin().listeners(lock.name()) == 0);
}

TEST_CASE("case t28: a failover is heard of from whichever sentinel leads it", "[topologies][case-t28]") {
  failover_world w;
  auto const listeners = [&](std::size_t sentinel) { return w.servers.sentinel(sentinel).admin().clients("sub=2"); };
  REQUIRE(wait_until([&] { return listeners(0) == 1 && listeners(1) == 1 && listeners(2) == 1; }));
  auto const held = w.own->get_lock(new_name()).acquire();
  w.replicated();
  w.servers.begin_fail_over(2);  // the first one is asked otherwise
  REQUIRE(wait_until([&] { return w.servers.named_by(2) != 0; }));
  stopwatch time;
  REQUIRE(w.log.wait_for(event_type::topology_changed, 2));
  CHECK(time.passed() < bound(300ms, 1s));
  CHECK(held.held());
}

TEST_CASE("case t31: a release that was not replicated does not come back", "[topologies][case-t31]") {
  failover_world w({.lock_watchdog_timeout = 30s});
  auto const lock = w.own->get_lock(new_name());
  auto held = lock.acquire();
  w.replicated();
  w.servers.cut_replication(1);
  w.servers.cut_replication(2);
  REQUIRE(held.release() == release_result::released);
  w.servers.node(0).kill();
  std::size_t const next = w.succeed();
  stopwatch time;
  REQUIRE(w.log.wait_for(event_type::topology_changed, 2));
  CHECK(wait_until([&] { return !w.has(next, lock.name()); }));
  CHECK(time.passed() < bound(300ms, 2s));
  // Another client gets it long before the lease of the ghost is over.
  event_log log;
  client other(w.servers.uri(), sentinel_config(log));
  CHECK(other.get_lock(lock.name()).acquire({.wait = 10s}).held());
}

TEST_CASE("case t33: requests that a dead master never read wait for nobody", "[topologies][case-t33]") {
  // The master stands still for good, and its replicas are promoted meanwhile.
  failover_world w;
  auto const lock = w.own->get_lock(new_name());
  auto held = lock.acquire();
  w.replicated();
  w.servers.node(0).pause();
  auto ended = std::async(std::launch::async, [&] { return held.release(); });
  std::size_t const next = w.succeed_by_all();
  stopwatch since;
  CHECK(ended.get() == release_result::released);
  CHECK(wait_until([&] { return !w.has(next, lock.name()); }));
  CHECK(lock.acquire({.wait = patience}).held());
  CHECK(since.passed() < bound(300ms, 900ms));  // to connect to the old one takes a second at least
}

TEST_CASE("case t35: a waiter hears again after a failover", "[topologies][case-t35]") {
  failover_world w({.lock_watchdog_timeout = 6s});
  event_log log;
  client other(w.servers.uri(), sentinel_config(log));
  auto const lock = w.own->get_lock(new_name());
  auto held = other.get_lock(lock.name()).acquire();
  auto waiting = std::async(std::launch::async, [&] { return lock.acquire({.wait = patience}); });
  REQUIRE(w.log.wait_for(event_type::waiting, lock.name()));
  w.replicated();
  w.servers.node(0).kill();
  w.succeed();
  REQUIRE(w.log.wait_for(event_type::topology_changed, 2));
  REQUIRE(log.wait_for(event_type::topology_changed, 2));
  REQUIRE(wait_until([&] { return w.own->snapshot().connected && other.snapshot().connected; }));
  stopwatch time;
  CHECK(held.release() == release_result::released);
  CHECK(waiting.get().held());
  CHECK(time.passed() < bound(1s, 3s));
}

TEST_CASE("case t39: scripts that the next master does not know go whole", "[topologies][case-t39]") {
  failover_world w;
  auto const lock = w.own->get_lock(new_name());
  REQUIRE(lock.acquire().release() == release_result::released);
  w.replicated();
  for (std::size_t i = 1; i < 3; ++i) w.servers.node(i).admin().ok("SCRIPT", "FLUSH");
  w.servers.node(0).kill();
  w.succeed();
  auto const held = lock.acquire({.wait = patience});
  CHECK(held.held());
}

TEST_CASE("case t42: replicas that stand still delay callers by the time that they may take",
          "[topologies][case-t42]") {
  event_log log;
  config settings = sentinel_config(log);
  settings.replicas_sync_timeout = 200ms;
  settings.timeout = 10s;
  settings.retry_attempts = 0;
  client own(calm_set().uri(), settings);
  REQUIRE(own.get_lock(new_name()).acquire({.wait = patience}).held());
  for (std::size_t const replica : {1u, 2u}) calm_set().node(replica).pause();
  std::shared_ptr<void> const resumed(nullptr, [](void*) {
    for (std::size_t const replica : {1u, 2u}) calm_set().node(replica).resume();
  });
  stopwatch since;
  std::vector<std::future<lease>> callers;
  for (int i = 0; i < 1'000; ++i)
    callers.push_back(own.get_lock(new_name()).async_acquire({.wait = 0ms}, asio::use_future));
  int unsynced = 0;
  std::chrono::milliseconds first{};
  for (auto& one : callers) {
    try {
      one.wait();
      if (&one == &callers.front()) first = since.passed();
      one.get();
    } catch (boost::system::system_error const& error) {
      unsynced += error.code() == errc::not_synced;
    }
  }
  auto const took = since.passed();
  for (std::size_t const replica : {1u, 2u}) calm_set().node(replica).resume();
  CHECK(unsynced == 1'000);
  CHECK(first < bound(450ms, 2s));
  // Who comes while a WAIT is under way waits for that one, too; and Redis sees that it is over a tenth of a second
  // late.
  CHECK(took < bound(900ms, 4s));
  CHECK(wait_until([&] { return own.get_lock(new_name()).acquire({.wait = patience}).held(); }));
}
