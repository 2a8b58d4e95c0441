// Masters of a cluster that are replaced while a client works. The numbers are those of docs/topology-cases.md.
#include <support/errors.hpp>
#include <topologies/cluster_world.hpp>

#include <boost/asio/use_future.hpp>

using namespace latchkey;
using namespace latchkey::test;

TEST_CASE("case t21: a master dies, and its replica keeps what is held", "[topologies][cluster][case-t21]") {
  cluster_world w(1s, {.lock_watchdog_timeout = 6s * slowness});
  auto const name = w.servers.name_on(0);
  stopwatch age;
  auto held = w.own->get_lock(name).acquire({.wait = patience});
  REQUIRE(held.held());
  w.servers.replicated();
  w.servers.node(0).kill();
  w.servers.await_master(3);
  stopwatch since;
  if (age.passed() > 5s * slowness) {
    WARN("the election took almost as long as the lease");
    return;
  }
  CHECK(lives_longer(w.servers.node(3), name, 5s * slowness));
  CHECK(since.passed() < bound(300ms, 2s));
  CHECK(w.log.wait_for(event_type::topology_changed, 4));
  CHECK(held.release() == release_result::released);
  CHECK_FALSE(w.has(3, name));
  CHECK(w.log.count_after(*w.own, event_type::lost) == 0);
}

TEST_CASE("case t49: quarantine is of the shard that failed over", "[topologies][cluster][case-t49]") {
  cluster_world w(1s, {.failover_quarantine = 3s});  // begins with one for each shard: who knows what was before
  auto held = w.own->get_lock(w.servers.name_on(0)).acquire({.wait = patience});
  REQUIRE(held.held());
  w.servers.replicated();
  w.servers.node(0).kill();
  w.servers.await_master(3);
  REQUIRE(w.log.wait_for(event_type::quarantined, 4));
  stopwatch since;
  auto fresh = w.own->get_lock(w.servers.name_on(0)).async_acquire({.wait = patience}, asio::use_future);
  CHECK(w.own->get_lock(w.servers.name_on(1)).acquire({.wait = patience}).held());
  CHECK(held.release() == release_result::released);
  CHECK(fresh.wait_for(0s) == std::future_status::timeout);
  CHECK(fresh.get().held());
  CHECK(since.passed() > 1s);
  CHECK(w.log.count_after(*w.own, event_type::quarantined) == 4);
}

TEST_CASE("case t22: a grant that dies with its master is told", "[topologies][cluster][case-t22]") {
  cluster_world w(1s);
  auto const name = w.servers.name_on(0);
  w.servers.cut_replication(3);
  auto held = w.own->get_lock(name).acquire({.wait = patience});
  REQUIRE(held.held());
  w.servers.node(0).kill();
  w.servers.await_master(3);
  stopwatch since;
  CHECK(wait_until([&] { return !held.held(); }));
  CHECK(since.passed() < bound(300ms, 2s));
  CHECK(w.log.wait_for(event_type::lost));
  CHECK(w.log.count_after(*w.own, event_type::lost) == 1);
}

TEST_CASE("case t25: an acquire that waits in a stopped master of a cluster is granted by its replica",
          "[topologies][cluster][case-t25]") {
  cluster_world w(1s);
  auto const name = w.servers.name_on(0);
  auto const lock = w.own->get_lock(name);
  REQUIRE(lock.acquire({.wait = patience}).release() == release_result::released);
  w.servers.replicated();
  w.servers.node(0).pause();
  auto late = lock.async_acquire({.wait = patience}, boost::asio::use_future);
  w.servers.await_master(3);
  lease held = late.get();
  REQUIRE(held.held());
  CHECK(w.has(3, name));
  w.servers.node(0).resume();
  // What waited in it runs, or not, and nobody here believes what it says of that.
  w.servers.follower(0, 3);
  CHECK(held.held());
  CHECK(held.release() == release_result::released);
  CHECK_FALSE(w.has(3, name));
  CHECK(w.log.count_after(*w.own, event_type::lost) == 0);
}

TEST_CASE("case t30: a replica takes over without asking anybody", "[topologies][cluster][case-t30]") {
  cluster_world w(1s);
  auto const kept_name = w.servers.name_on(0), lost_name = w.servers.name_on(1);
  auto kept = w.own->get_lock(kept_name).acquire({.wait = patience});
  REQUIRE(kept.held());
  w.servers.replicated();
  w.servers.cut_replication(4);
  auto lost = w.own->get_lock(lost_name).acquire({.wait = patience});
  REQUIRE(lost.held());
  w.servers.fail_over(3, "FORCE");
  w.servers.fail_over(4, "TAKEOVER");
  CHECK(wait_until([&] { return !lost.held(); }));
  w.servers.follower(0, 3);  // there is a replica again that can confirm
  CHECK(kept.extend(30s));
  CHECK(kept.release() == release_result::released);
  CHECK(w.log.wait_for(event_type::lost));
  CHECK(w.log.count_after(*w.own, event_type::lost) == 1);
}

TEST_CASE("cases t34, t35: a whole shard is down, and comes back", "[topologies][cluster][case-t34][case-t35]") {
  cluster_world w(1s);
  auto const name = w.servers.name_on(0);
  auto const asked = clock::now();
  auto held = w.own->get_lock(name).acquire({.wait = patience, .lease = 4s});
  auto const granted = clock::now();
  REQUIRE(held.held());
  auto lost = std::async(std::launch::async, [&] {
    w.log.wait_for(event_type::lost, name);
    return clock::now();
  });
  auto beside = w.own->get_lock(w.servers.name_on(1)).acquire({.wait = patience});  // or it had no connection at all
  REQUIRE(beside.held());
  w.servers.replicated();
  for (std::size_t i = 0; i < 6; ++i)
    w.servers.node(i).admin().ok("CONFIG", "SET", "cluster-require-full-coverage", "no");
  for (std::size_t const one : {0u, 3u}) w.servers.node(one).pause();
  for (milliseconds const wait : {500ms, 1'500ms}) {  // by the second one the node is known not to answer
    stopwatch since;
    CHECK(error_of([&] { return w.own->get_lock(w.servers.name_on(0)).acquire({.wait = wait}); }) == errc::timeout);
    CHECK(since.passed() < wait + 500ms * slowness);
  }
  CHECK(w.own->get_lock(w.servers.name_on(1)).acquire({.wait = patience}).held());
  auto const told = lost.get();  // at its deadline
  CHECK(told >= asked + 4s);
  CHECK(told < granted + 4s + 1s * slowness);
  CHECK_FALSE(held.held());
  waiter waits(*w.own, name);
  CHECK(w.log.wait_for(event_type::attempt, 4));
  for (std::size_t const one : {0u, 3u}) w.servers.node(one).resume();
  // Its cluster has to agree first.
  CHECK(wait_until([&] { return w.servers.serves(0, name) || w.servers.serves(3, name); }));
  auto const healed = std::chrono::steady_clock::now();
  CHECK(waits.had.get() - healed < bound(1s, 3s));
}

TEST_CASE("case t45: a multi lock of three shards, one of which fails over", "[topologies][cluster][case-t45]") {
  cluster_world w(1s);
  std::vector<std::string> names;
  for (std::size_t i = 0; i < 3; ++i) names.push_back(w.servers.name_on(i));
  std::atomic<bool> over{false};
  std::atomic<int> inside{0}, doubles{0}, sections{0};
  std::vector<std::future<void>> callers;
  std::shared_ptr<void> const ends(nullptr, [&](void*) { over = true; });  // before the callers are waited for
  for (int i = 0; i < 2; ++i)
    callers.push_back(std::async(std::launch::async, [&] {
      client one(w.servers.uri(), cluster_config(w.log));
      std::vector<distributed_lock> locks;
      for (auto const& name : names) locks.push_back(one.get_lock(name));
      auto const all = one.get_multi_lock(locks);
      while (!over) {
        lease held = all.acquire({.wait = patience});
        if (!held.held()) throw std::runtime_error("starved");
        if (++inside != 1) ++doubles;
        ++sections;
        --inside;
        held.release();
      }
    }));
  auto const go_on = [&] {
    int const before = sections;
    CHECK(wait_until([&] { return sections > before + 20; }));
  };
  go_on();
  w.servers.node(0).kill();
  w.servers.await_master(3);
  go_on();
  over = true;
  for (auto& one : callers) CHECK_NOTHROW(one.get());
  CHECK(doubles == 0);
  std::size_t const nodes[] = {3, 1, 2};
  for (std::size_t i = 0; i < 3; ++i) CHECK(wait_until([&] { return !w.has(nodes[i], names[i]); }));
}

TEST_CASE("case t46: servers that refuse CLIENT KILL", "[topologies][cluster][case-t46]") {
  cluster_world w(1s);
  // Redis 6.2 takes no part of a command away.
  for (std::size_t i = 0; i < 6; ++i)
    w.servers.node(i).admin().ok("ACL", "SETUSER", "default", "-client", "+client|setname", "+client|list");
  event_log log;
  client own(w.servers.uri(), cluster_config(log));
  auto held = own.get_lock(w.servers.name_on(0)).acquire({.wait = patience});
  REQUIRE(held.held());
  CHECK(log.wait_for(event_type::kill_refused, 1));
  w.servers.replicated();
  w.servers.node(0).kill();
  w.servers.await_master(3);
  CHECK(held.extend(30s));
  CHECK(held.release() == release_result::released);
  CHECK(log.count_after(own, event_type::lost) == 0);
}
