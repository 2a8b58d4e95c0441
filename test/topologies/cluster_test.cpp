// A client of a cluster in which nothing happens. The numbers are those of docs/topology-cases.md.
#include <support/errors.hpp>
#include <topologies/cluster_world.hpp>

#include <boost/asio/use_future.hpp>

using namespace latchkey;
using namespace latchkey::test;

namespace {

// One cluster for all tests that leave it as it was.
cluster_set& calm_cluster() {
  static cluster_set one(std::chrono::minutes(1));
  return one;
}

}  // namespace

TEST_CASE("cluster: every name is taken on the node that has its slot", "[topologies][cluster]") {
  event_log log;
  client own(calm_cluster().uri(), cluster_config(log));
  own.connect(patience);
  for (std::size_t i = 0; i < 3; ++i) {
    auto const lock = own.get_lock(calm_cluster().name_on(i));
    auto const held = lock.acquire({.wait = patience});
    REQUIRE(held.held());
    CHECK(calm_cluster().node(i).admin().integer("EXISTS", lock.name()) == 1);
    CHECK(lock.is_locked());
    CHECK(lock.hold_count() == 0);  // of the thread: the lease has an owner of its own
  }
  CHECK(own.snapshot().redirected == 0);
}

TEST_CASE("cluster: every kind takes, waits and releases there", "[topologies][cluster]") {
  event_log log;
  client own(calm_cluster().uri(), cluster_config(log));
  client other(calm_cluster().uri(), cluster_config(log));
  for (getter const get : {&client::get_lock, &client::get_fair_lock, &client::get_non_reentrant_lock,
                           &client::get_spin_lock, &client::get_fenced_lock, &client::get_plain_lock}) {
    auto const name = calm_cluster().name_on(1);
    auto mine = (own.*get)(name).acquire({.wait = patience});
    REQUIRE(mine.held());
    CHECK_FALSE((other.*get)(name).acquire({.wait = 0ms}).held());  // which connects first, however long that takes
    auto waits = std::async(std::launch::async, [&] { return (other.*get)(name).acquire({.wait = patience}); });
    CHECK(wait_until([&] { return other.snapshot().waiting == 1; }));
    CHECK(mine.release() == release_result::released);
    auto theirs = waits.get();
    CHECK(theirs.held());
    CHECK(theirs.release() == release_result::released);
  }
  auto const both = own.get_read_write_lock(calm_cluster().name_on(2));
  auto reads = both.read_lock().acquire({.wait = patience});
  CHECK(reads.held());
  CHECK_FALSE(both.write_lock().acquire({.wait = 0ms}).held());
  auto const permits = own.get_semaphore(calm_cluster().name_on(0), 2);
  CHECK(permits.try_acquire());
  auto const latch = own.get_count_down_latch(calm_cluster().name_on(0));
  CHECK(latch.try_set_count(1));
  latch.count_down();
  CHECK(latch.count() == 0);
}

TEST_CASE("cluster: members of a multi lock are on several nodes, and taken all or none", "[topologies][cluster]") {
  event_log log;
  client own(calm_cluster().uri(), cluster_config(log));
  std::vector<distributed_lock> members;
  for (std::size_t i = 0; i < 3; ++i) members.push_back(own.get_lock(calm_cluster().name_on(i)));
  auto const all = own.get_multi_lock(members);
  {
    auto const held = all.acquire({.wait = patience});
    REQUIRE(held.held());
    for (std::size_t i = 0; i < 3; ++i) CHECK(calm_cluster().node(i).admin().integer("EXISTS", members[i].name()) == 1);
  }
  auto const one = members[2].acquire({.wait = patience});
  REQUIRE(one.held());
  CHECK_FALSE(all.acquire({.wait = 100ms}).held());
  CHECK_FALSE(members[0].is_locked());
}

TEST_CASE("case t1: nodes that are gone cost no more than an attempt", "[topologies][cluster][case-t1]") {
  event_log log;
  auto const dead = "127.0.0.1:" + std::to_string(free_port()) + ",";
  client own(calm_cluster().uri(dead), cluster_config(log));
  stopwatch time;
  CHECK(own.get_lock(new_name()).acquire({.wait = patience}).held());
  CHECK(time.passed() < 1050ms * slowness);
}

TEST_CASE("case t2: no node of the cluster answers", "[topologies][cluster][case-t2]") {
  event_log log;
  client own("redis-cluster://127.0.0.1:" + std::to_string(free_port()), cluster_config(log));
  auto const error = thrown_by([&] { return own.get_lock(new_name()).acquire({.wait = 300ms}); });
  CHECK(error.code() == errc::connect_failed);
  CHECK(error.server_text().find("node 127.0.0.1:") != std::string::npos);
}

TEST_CASE("cluster: a server that is none is named at once", "[topologies][cluster]") {
  redis_server alone({.tcp = true});
  event_log log;
  client own("redis-cluster://127.0.0.1:" + std::to_string(alone.where().port), cluster_config(log));
  stopwatch time;
  auto const error = thrown_by([&] { return own.get_lock(new_name()).acquire(); });
  CHECK(error.code() == errc::no_master);
  CHECK(error.server_text().find("cluster support disabled") != std::string::npos);
  CHECK(time.passed() < 1s * slowness);
}

TEST_CASE("cluster: a name whose keys are in several slots is refused", "[topologies][cluster]") {
  event_log log;
  client own(calm_cluster().uri(), cluster_config(log));
  auto const error = thrown_by([&] { return own.get_fair_lock("a{b"); });
  CHECK(error.code() == errc::cross_slot);
}

TEST_CASE("case t47: a replica as the only seed", "[topologies][cluster][case-t47]") {
  event_log log;
  client own("redis-cluster://" + cluster_set::address(calm_cluster().node(4)), cluster_config(log));
  CHECK(own.get_lock(calm_cluster().name_on(1)).acquire({.wait = patience}).held());
}

TEST_CASE("case t38: channels of many slots of one node", "[topologies][cluster][case-t38]") {
  event_log log;
  client own(calm_cluster().uri(), cluster_config(log)), other(calm_cluster().uri(), cluster_config(log));
  std::vector<lease> held;
  std::vector<waiter> waiters;
  for (int i = 0; i < 50; ++i) {
    auto const name = calm_cluster().name_on(0);
    held.push_back(own.get_lock(name).acquire({.wait = patience}));
    REQUIRE(held.back().held());
    waiters.emplace_back(other, name);
  }
  CHECK(wait_until([&] { return other.snapshot().subscriptions == 50; }));
  for (auto& one : held) CHECK(one.release() == release_result::released);
  for (auto& one : waiters) CHECK(one.had.get() != std::chrono::steady_clock::time_point::max());
  CHECK(log.count_after(own, event_type::subscribe_refused) == 0);
}

TEST_CASE("cluster: inspect counts who listens to a sharded channel", "[topologies][cluster]") {
  cluster_world w;
  client other(w.servers.uri(), cluster_config(w.log));
  auto const lock = w.own->get_lock(w.servers.name_on(1));
  auto held = lock.acquire({.wait = patience});
  REQUIRE(held.held());
  CHECK(w.own->inspect(lock).listeners == 0);
  waiter waits(other, lock.name());
  CHECK(wait_until([&] { return w.own->inspect(lock).listeners == 1; }));
  held.release();
  waits.had.get();
}
