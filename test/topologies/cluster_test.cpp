// A client of a cluster. The numbers are those of docs/topologies.md.
#include <latchkey/latchkey.hpp>
#include <support/catch.hpp>
#include <support/cluster_set.hpp>
#include <support/configs.hpp>
#include <support/errors.hpp>

#include <boost/asio/use_future.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <optional>
#include <string>
#include <thread>
#include <vector>

using namespace latchkey;
using namespace latchkey::test;

namespace {

// One cluster for all tests that leave it as it was.
cluster_set& calm_cluster() {
  static cluster_set one(std::chrono::minutes(1));
  return one;
}

config cluster_config(event_log const& log) {
  config settings = steady_config(log);
  settings.connect_timeout = 1s * slowness;
  settings.timeout = 1s * slowness;
  settings.close_timeout = patience;
  settings.retry_attempts = 20;  // their number is not to be used up before a failover is over
  return settings;
}

struct cluster_world {
  explicit cluster_world(std::chrono::milliseconds node_timeout = std::chrono::minutes(1),
                         std::chrono::milliseconds quarantine = {})
      : servers(node_timeout) {
    config settings = cluster_config(log);
    settings.failover_quarantine = quarantine;
    own.emplace(servers.uri(), settings);
    own->connect(patience);
  }

  bool has(std::size_t node, std::string_view lock) {
    auto admin = servers.node(node).admin();
    admin.command("READONLY");
    auto const said = admin.command("EXISTS", lock);
    return !said.is_error() && said.integer == 1;
  }

  event_log log;
  cluster_set servers;
  std::optional<client> own;
};

// Waits on a thread of its own for a lock, and says how long after `since` it had it.
struct waiter {
  waiter(client const& of, std::string name)
      : had(std::async(std::launch::async, [lock = of.get_lock(std::move(name))] {
          lease const mine = lock.acquire({.wait = patience});
          return mine.held() ? std::chrono::steady_clock::now() : std::chrono::steady_clock::time_point::max();
        })) {}
  std::future<std::chrono::steady_clock::time_point> had;
};

using getter = distributed_lock (client::*)(std::string) const;

// Clients that take one lock in turn, and look whether anybody else has it.
class crowd {
 public:
  crowd(cluster_world& w, getter get, std::string const& name) {
    for (int i = 0; i < 8; ++i)
      all_.push_back(std::async(std::launch::async, [this, &w, get, name] {
        client one(w.servers.uri(), cluster_config(w.log));
        auto const lock = (one.*get)(name);
        try {
          while (!over_) {
            auto held = lock.acquire({.wait = patience});
            if (!held.held()) return std::string("starved");
            if (++inside_ != 1) ++doubles_;
            ++sections_;
            --inside_;
            if (held.release() != release_result::released) return std::string("lost");
          }
        } catch (lock_error const& error) {
          return std::string(error.what());
        }
        return std::string();
      }));
  }
  // They are at work.
  void go_on() {
    int const before = sections_;
    CHECK(wait_until([&] { return sections_ > before + 20; }));
  }
  void end() {
    over_ = true;
    for (auto& one : all_) CHECK(one.get() == std::string());
    CHECK(doubles_ == 0);
  }

 private:
  std::atomic<bool> over_{false};
  std::atomic<int> inside_{0}, doubles_{0}, sections_{0};
  std::vector<std::future<std::string>> all_;
};

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
    CHECK_FALSE((other.*get)(name).acquire({.wait = 50ms}).held());
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
  CHECK_FALSE(both.write_lock().acquire({.wait = 50ms}).held());
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

TEST_CASE("case t1: nodes that are gone cost no more than an attempt", "[topologies][cluster]") {
  event_log log;
  auto const dead = "127.0.0.1:" + std::to_string(free_port()) + ",";
  client own(calm_cluster().uri(dead), cluster_config(log));
  stopwatch time;
  CHECK(own.get_lock(new_name()).acquire({.wait = patience}).held());
  CHECK(time.passed() < 1050ms * slowness);
}

TEST_CASE("case t2: no node of the cluster answers", "[topologies][cluster]") {
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

TEST_CASE("case t38: channels of many slots", "[topologies][cluster][case-t38]") {
  event_log log;
  client own(calm_cluster().uri(), cluster_config(log)), other(calm_cluster().uri(), cluster_config(log));
  std::vector<lease> held;
  std::vector<waiter> waiters;
  for (int i = 0; i < 50; ++i) {
    auto const name = new_name();
    held.push_back(own.get_lock(name).acquire({.wait = patience}));
    REQUIRE(held.back().held());
    waiters.emplace_back(other, name);
  }
  CHECK(wait_until([&] { return other.snapshot().subscriptions == 50; }));
  for (auto& one : held) CHECK(one.release() == release_result::released);
  for (auto& one : waiters) CHECK(one.had.get() != std::chrono::steady_clock::time_point::max());
  CHECK(log.count(event_type::subscribe_refused) == 0);
}

TEST_CASE("case t16, t8: a slot moves while a lock in it is held", "[topologies][cluster][case-t16]") {
  cluster_world w;
  auto const name = w.servers.name_on(0);
  auto held = w.own->get_lock(name).acquire({.wait = patience});
  REQUIRE(held.held());
  w.servers.begin_move(name, 0, 1);
  w.servers.move(name, 0, 1);
  w.servers.end_move(name, 0, 1);
  CHECK(w.has(1, name));
  CHECK(held.extend(20s));
  CHECK(w.own->snapshot().redirected == 1);
  CHECK(held.release() == release_result::released);
  CHECK_FALSE(w.has(1, name));
  CHECK(w.own->get_lock(name).acquire({.wait = patience}).held());
}

TEST_CASE("case t17: a slot moves while a lock in it is waited for", "[topologies][cluster][case-t17]") {
  cluster_world w;
  client other(w.servers.uri(), cluster_config(w.log));
  auto const name = w.servers.name_on(0);
  auto held = w.own->get_lock(name).acquire({.wait = patience, .lease = 60s});
  REQUIRE(held.held());
  waiter waits(other, name);
  CHECK(wait_until([&] { return w.servers.node(0).admin().ok("PUBSUB", "SHARDCHANNELS").elements.size() == 1; }));
  w.servers.begin_move(name, 0, 1);
  w.servers.move(name, 0, 1);
  w.servers.end_move(name, 0, 1);
  CHECK(wait_until([&] { return w.servers.node(1).admin().ok("PUBSUB", "SHARDCHANNELS").elements.size() == 1; }));
  CHECK(held.release() == release_result::released);
  auto const released = std::chrono::steady_clock::now();
  CHECK(waits.had.get() - released < 50ms * slowness);
}

TEST_CASE("case t12, t14: a lock in a slot that is half moved", "[topologies][cluster][case-t12]") {
  cluster_world w;
  auto const name = w.servers.name_on(0), fresh = "{" + name + "}2";
  auto held = w.own->get_lock(name).acquire({.wait = patience});
  REQUIRE(held.held());
  w.servers.begin_move(name, 0, 1);
  CHECK(held.extend(20s));  // its key is still at the source
  w.servers.move(name, 0, 1);
  stopwatch time;
  CHECK(held.extend(20s));
  CHECK(w.own->get_lock(name).is_locked());
  CHECK(held.release() == release_result::released);
  CHECK(time.passed() < 150ms * slowness);
  auto again = w.own->get_lock(name).acquire({.wait = patience});
  REQUIRE(again.held());
  CHECK(w.has(0, name) == false);
  w.servers.end_move(name, 0, 1);
  CHECK(w.has(1, name));
  CHECK(again.release() == release_result::released);
}

TEST_CASE("case t19: a slot goes back and forth under 8 clients", "[topologies][cluster][case-t19]") {
  cluster_world w;
  for (getter const get : {&client::get_lock, &client::get_spin_lock, &client::get_plain_lock}) {
    auto const name = w.servers.name_on(0);
    crowd all(w, get, name);
    for (int i = 0; i < 10; ++i) {
      all.go_on();
      std::size_t const from = i % 2 == 0 ? 0 : 1, to = 1 - from;
      w.servers.begin_move(name, from, to);
      w.servers.move_all(name, from, to);
      w.servers.end_move(name, from, to);
    }
    all.end();
  }
  CHECK(w.log.count(event_type::lost) == 0);
}

TEST_CASE("case t29: a replica takes over by consent under 8 clients", "[topologies][cluster][case-t29]") {
  cluster_world w(1s);
  for (getter const get : {&client::get_lock, &client::get_fair_lock}) {
    auto const name = w.servers.name_on(0);
    crowd all(w, get, name);
    for (int i = 0; i < 3; ++i) {
      all.go_on();
      w.servers.fail_over(w.servers.follower(0, 3));
    }
    all.go_on();
    all.end();
  }
  CHECK(w.log.count(event_type::lost) == 0);
}

TEST_CASE("case t29: a replica takes over by consent, many times", "[topologies][cluster][case-t29]") {
  cluster_world w(1s);
  auto const name = w.servers.name_on(0);
  for (int i = 0; i < 4; ++i) {
    std::size_t const replica = w.servers.follower(0, 3);
    auto held = w.own->get_lock(name).acquire({.wait = patience});
    REQUIRE(held.held());
    w.servers.replicated();
    w.servers.fail_over(replica);
    CHECK(held.extend(30s));
    CHECK(held.release() == release_result::released);
    CHECK(w.log.count(event_type::lost) == 0);
  }
}

TEST_CASE("case t21: a master dies, and its replica keeps what is held", "[topologies][cluster][case-t21]") {
  cluster_world w(1s);
  auto const name = w.servers.name_on(0);
  auto held = w.own->get_lock(name).acquire({.wait = patience});
  REQUIRE(held.held());
  w.servers.replicated();
  w.servers.node(0).kill();
  w.servers.await_master(3);
  CHECK(wait_until([&] { return w.log.count(event_type::topology_changed) >= 4; }));
  CHECK(held.release() == release_result::released);
  CHECK_FALSE(w.has(3, name));
  CHECK(w.log.count(event_type::lost) == 0);
}

TEST_CASE("cluster: quarantine is of the shard that failed over", "[topologies][cluster]") {
  cluster_world w(1s, 3s);  // begins with one for each shard: who knows what was before
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
  CHECK(w.log.count(event_type::quarantined) == 4);
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

TEST_CASE("case t22: a grant that dies with its master is told", "[topologies][cluster][case-t22]") {
  cluster_world w(1s);
  auto const name = w.servers.name_on(0);
  w.servers.node(3).admin().ok("CONFIG", "SET", "masterauth", "wrong");
  w.servers.node(3).admin().ok("CLIENT", "KILL", "TYPE", "master");
  auto held = w.own->get_lock(name).acquire({.wait = patience});
  REQUIRE(held.held());
  w.servers.node(0).kill();
  w.servers.await_master(3);
  CHECK(wait_until([&] { return !held.held(); }));
  CHECK(w.log.count(event_type::lost) == 1);
}
