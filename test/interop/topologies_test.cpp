// The same locks in a cluster and behind sentinels: who holds one keeps the other library out, a release wakes the
// other's waiter, in a cluster by a sharded channel, and both go along when a replica takes over or a slot moves.
#include <interop/support/interop_world.hpp>
#include <support/catch.hpp>
#include <support/cluster_set.hpp>
#include <support/sentinel_set.hpp>
#include <wire/cluster.hpp>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

using namespace latchkey::test;
using namespace std::chrono_literals;

namespace {

constexpr char const* shared_kinds[] = {"lock", "fair_lock", "read_lock", "write_lock", "fenced_lock"};

bool names(raw_redis::reply const& channels, std::string const& name) {
  for (auto const& channel : channels.elements)
    if (channel.text.find(name) != std::string::npos) return true;
  return false;
}

struct cluster {
  cluster_set servers{2s};
  std::size_t first = 0;  // the node of name(0)

  std::string uri() const { return servers.uri(); }
  std::string name(std::size_t node) { return servers.name_on(node % 3); }
  bool is_listened_to(std::string const& name, std::size_t node) {
    return names(servers.node(node).admin().ok("PUBSUB", "SHARDCHANNELS"), name);
  }
  bool is_listened_to(std::string const& name) {
    return is_listened_to(name, first) || is_listened_to(name, 1) || is_listened_to(name, 2);
  }
  // The node of name(0) gives way to its replica, which has everything.
  void fail_over() {
    servers.replicated();
    servers.fail_over(3);
    first = 3;
  }
  void replicated() { servers.replicated(); }
  void cut_replication() { servers.cut_replication(3); }
  // The same node dies, and its replica takes over.
  void kill() {
    servers.node(0).kill();
    servers.await_master(3);
    first = 3;
  }
  // All that is in the slot of this name goes from one node to another.
  void move(std::string const& name, std::size_t from, std::size_t to) {
    servers.begin_move(name, from, to);
    end_move(name, from, to);
  }
  void end_move(std::string const& name, std::size_t from, std::size_t to) {
    servers.move_all(name, from, to);
    servers.end_move(name, from, to);
  }
};

struct sentinels {
  sentinel_set servers;

  std::string uri() const { return servers.uri(); }
  std::string name(std::size_t) { return new_name(); }
  bool is_listened_to(std::string const& name) {
    return names(servers.node(servers.master()).admin().ok("PUBSUB", "CHANNELS"), name);
  }
  void fail_over() {
    replicated();
    servers.fail_over();
  }
  void replicated() { await_replication(servers.node(servers.master())); }
  void cut_replication() {
    for (std::size_t const replica : {1u, 2u}) servers.cut_replication(replica);
  }
  void kill() {
    servers.node(0).kill();
    servers.await_successor(0);
  }
};

template <class Place>
struct peers {
  explicit peers(std::chrono::milliseconds lease = 30s)
      : redisson(redisson_peer(lease, {place.uri()})), latchkey(latchkey_peer(lease, {place.uri()})) {}

  Place place;
  std::unique_ptr<peer> redisson, latchkey;
};

// A call of Redisson's after servers changed. As long as it learns anew where slots are it has no server to ask, or
// asks one that sends it on until it gives up: nothing was done then, and the call is made again.
template <class... Arguments>
answer settled(peer& redisson, Arguments const&... arguments) {
  answer got;
  wait_until([&] {
    got = redisson.call(arguments...);
    return got.ok || (got.value != "RedisNodeNotFoundException" && got.value != "RedisException" &&
                      got.value != "RedisConnectionException");
  });
  return got;
}

// The same on a thread of its own.
template <class... Arguments>
std::future<answer> settling(peer& redisson, Arguments const&... arguments) {
  return std::async(std::launch::async,
                    [&redisson, ... words = std::string(arguments)] { return settled(redisson, words...); });
}

// What keeps this side out.
std::string rival_of(std::string const& kind) { return kind == "read_lock" ? "write_lock" : kind; }

template <class Place>
void one_way(Place& place, peer& holder, peer& other, std::string const& kind, std::string const& name) {
  INFO(holder.library() << " > " << other.library() << ", " << kind);
  auto const rival = rival_of(kind);
  CHECK(holder.call("h", "try_lock", kind, name) == "true");
  CHECK(other.call("o", "try_lock", rival, name) == "false");
  auto waits = other.start("o", "try_lock", rival, name, 20'000, -1);
  CHECK(wait_until([&] { return place.is_listened_to(name); }));
  // It is deaf for a moment after it subscribed.
  if (other.library() == "Redisson")
    CHECK(other.call("observer", "await_blocked", rival, name, "o", patience) == "blocked");
  auto const released = holder.call("h", "unlock", kind, name);
  CHECK(released == "released");
  auto const had = peer::value_in(std::move(waits), "the waiter");
  CHECK(had == "true");
  CHECK(had.at - released.at < 1s * slowness);
  CHECK(other.call("o", "unlock", rival, name) == "released");
}

}  // namespace

TEMPLATE_TEST_CASE("in a cluster and behind sentinels both libraries share locks", "[interop][case-t48]", cluster,
                   sentinels) {
  peers<TestType> p;
  std::size_t node = 0;
  for (std::string const kind : shared_kinds) {
    one_way(p.place, *p.redisson, *p.latchkey, kind, p.place.name(node++));
    one_way(p.place, *p.latchkey, *p.redisson, kind, p.place.name(node++));
  }
}

TEMPLATE_TEST_CASE("in a cluster and behind sentinels both libraries follow a replica that takes over",
                   "[interop][case-t48]", cluster, sentinels) {
  peers<TestType> p;
  struct held {
    std::string kind, mine, theirs;  // latchkey's and Redisson's
  };
  std::vector<held> all;
  for (std::string const kind : shared_kinds) {
    all.push_back({kind, p.place.name(0), p.place.name(0)});
    CHECK(p.latchkey->call("h", "try_lock", kind, all.back().mine) == "true");
    CHECK(p.redisson->call("h", "try_lock", kind, all.back().theirs) == "true");
  }
  p.place.fail_over();
  for (auto const& [kind, mine, theirs] : all) {
    INFO(kind);
    auto const rival = rival_of(kind);
    // Calls of Redisson's fail for a while after a failover. If it were granted once it would be again.
    CHECK(wait_until([&, &name = mine] { return p.redisson->call("o", "try_lock", rival, name) == "false"; }));
    CHECK(p.latchkey->call("o", "try_lock", rival, theirs) == "false");
    auto waits = p.latchkey->start("o", "try_lock", rival, theirs, 20'000, -1);
    CHECK(p.latchkey->call("h", "unlock", kind, mine) == "released");
    CHECK(settled(*p.redisson, "o", "try_lock", rival, mine, 20'000, -1) == "true");
    CHECK(settled(*p.redisson, "h", "unlock", kind, theirs) == "released");
    CHECK(peer::value_in(std::move(waits), "the waiter") == "true");
  }
}

TEMPLATE_TEST_CASE("in a cluster and behind sentinels both libraries renew what they hold", "[interop][case-t48]",
                   cluster, sentinels) {
  constexpr auto brief = 2s;
  peers<TestType> p(brief);
  std::vector<std::string> mine, theirs;
  for (std::string const kind : shared_kinds) {
    mine.push_back(p.place.name(mine.size()));
    theirs.push_back(p.place.name(theirs.size()));
    CHECK(p.latchkey->call("h", "try_lock", kind, mine.back()) == "true");
    CHECK(p.redisson->call("h", "try_lock", kind, theirs.back()) == "true");
  }
  std::this_thread::sleep_for(2 * brief);
  for (std::size_t i = 0; i < mine.size(); ++i) {
    std::string const kind = shared_kinds[i], rival = rival_of(kind);
    INFO(kind);
    CHECK(p.redisson->call("o", "try_lock", rival, mine[i]) == "false");
    CHECK(p.latchkey->call("o", "try_lock", rival, theirs[i]) == "false");
    CHECK(p.latchkey->call("h", "unlock", kind, mine[i]) == "released");
    CHECK(p.redisson->call("h", "unlock", kind, theirs[i]) == "released");
  }
}

// A waiter of Redisson's stays subscribed where the slot was: it looks when the time is over that it was told.
TEST_CASE("in a cluster both libraries follow a slot that moves", "[interop][case-t48]") {
  peers<cluster> p;
  auto const theirs = p.place.name(0), mine = p.place.name(0);
  CHECK(p.redisson->call("h", "try_lock", "lock", theirs) == "true");
  auto waits = p.latchkey->start("o", "try_lock", "lock", theirs, 20'000, -1);
  CHECK(wait_until([&] { return p.place.is_listened_to(theirs); }));
  p.place.move(theirs, 0, 1);
  CHECK(wait_until([&] { return p.place.is_listened_to(theirs, 1); }));
  auto const released = settled(*p.redisson, "h", "unlock", "lock", theirs);
  CHECK(released == "released");
  auto const had = peer::value_in(std::move(waits), "the waiter");
  CHECK(had == "true");
  CHECK(had.at - released.at < 1s * slowness);

  CHECK(p.latchkey->call("h", "try_lock", "lock", mine) == "true");
  p.place.move(mine, 0, 1);
  CHECK(settled(*p.redisson, "o", "try_lock", "lock", mine) == "false");
  CHECK(p.latchkey->call("h", "unlock", "lock", mine) == "released");
  CHECK(settled(*p.redisson, "o", "try_lock", "lock", mine) == "true");
  CHECK(p.latchkey->call("h", "try_lock", "lock", mine) == "false");
}

// The node of this name knows Redisson's scripts of a plain lock then. Sent on to one that does not, Redisson asks that
// by their SHA1 again and again, without a pause, until it has learnt anew where the slot is.
void teach_scripts(peer& redisson, std::string const& name) {
  CHECK(redisson.call("h", "try_lock", "lock", name) == "true");
  CHECK(redisson.call("h", "unlock", "lock", name) == "released");
}

// Redisson's unlock names several keys, which no server takes before the move is over.
TEST_CASE("in a cluster a waiter where a slot was hears of a release where it goes", "[interop][case-t48]") {
  peers<cluster> p;
  auto const theirs = p.place.name(0), mine = p.place.name(0);
  auto const begin_move = [&](std::string const& name) {
    p.place.servers.begin_move(name, 0, 1);
    p.place.servers.move_all(name, 0, 1);
  };
  teach_scripts(*p.redisson, p.place.name(1));
  CHECK(p.latchkey->call("h", "try_lock", "lock", mine) == "true");
  auto hears = settling(*p.redisson, "o", "try_lock", "lock", mine, "20000", "-1");
  CHECK(wait_until([&] { return p.place.is_listened_to(mine, 0); }));
  CHECK(p.redisson->call("observer", "await_blocked", "lock", mine, "o", patience) == "blocked");
  begin_move(mine);
  CHECK(p.latchkey->call("h", "unlock", "lock", mine) == "released");
  CHECK(hears.get() == "true");
  CHECK(p.latchkey->call("h", "try_lock", "lock", mine) == "false");
  p.place.end_move(mine, 0, 1);
  CHECK(settled(*p.redisson, "o", "unlock", "lock", mine) == "released");

  CHECK(settled(*p.redisson, "h", "try_lock", "lock", theirs) == "true");
  auto waits = p.latchkey->start("o", "try_lock", "lock", theirs, 20'000, -1);
  CHECK(wait_until([&] { return p.place.is_listened_to(theirs, 0); }));
  begin_move(theirs);
  auto unlocks = settling(*p.redisson, "h", "unlock", "lock", theirs);
  CHECK(waits.wait_for(300ms) == std::future_status::timeout);
  p.place.end_move(theirs, 0, 1);
  auto const released = unlocks.get();
  CHECK(released == "released");
  auto const had = peer::value_in(std::move(waits), "the waiter");
  CHECK(had == "true");
  CHECK(had.at - released.at < 1s * slowness);
}

TEST_CASE("in a cluster neither library is beside the other while a slot goes to and fro", "[interop][case-t48]") {
  peers<cluster> p;
  auto const name = p.place.name(0);
  teach_scripts(*p.redisson, p.place.name(1));
  std::atomic<bool> over{false};
  std::atomic<int> inside{0}, doubles{0}, by_latchkey{0}, by_redisson{0};
  std::vector<std::future<std::string>> all;
  std::shared_ptr<void> const ends(nullptr, [&](void*) { over = true; });  // before the callers are waited for
  auto const begin = [&](peer& with, std::string const& worker, std::atomic<int>& sections) {
    all.push_back(std::async(std::launch::async, [&, worker] {
      for (; !over; std::this_thread::sleep_for(5ms)) {
        auto const had = settled(with, worker, "try_lock", "lock", name);
        if (had == "false") continue;
        if (had != "true") return to_string(had);
        if (++inside != 1) ++doubles;
        std::this_thread::sleep_for(2ms);
        --inside;
        ++sections;
        if (auto const released = settled(with, worker, "unlock", "lock", name); released != "released")
          return to_string(released);
      }
      return std::string();
    }));
  };
  for (std::string const worker : {"a", "b"}) {
    begin(*p.latchkey, worker, by_latchkey);
    begin(*p.redisson, worker, by_redisson);
  }
  auto const go_on = [&](std::atomic<int> const& sections) {
    CHECK(wait_until([&, before = sections.load()] { return sections > before; }));
  };
  go_on(by_redisson);
  for (std::size_t i = 0; i < 20; ++i) {
    p.place.move(name, i % 2, 1 - i % 2);
    go_on(by_latchkey);
  }
  go_on(by_redisson);
  over = true;
  for (auto& one : all) CHECK(one.get() == std::string());
  CHECK(doubles == 0);
}

TEST_CASE("in a cluster locks of several keys go on when their slot has moved", "[interop][case-t48]") {
  peers<cluster> p(6s);
  auto const tag = p.place.name(0);
  struct held {
    std::string kind, mine, theirs;  // latchkey's and Redisson's
    std::future<answer> by_latchkey{}, by_redisson{}, waits_for_latchkey{}, waits_for_redisson{};
    std::string rival() const { return rival_of(kind); }
  };
  std::vector<held> all;
  for (std::string const kind : {"fair_lock", "read_lock", "write_lock", "fenced_lock"}) {
    auto& one = all.emplace_back(held{kind, "{" + tag + "}mine" + kind, "{" + tag + "}theirs" + kind});
    CHECK(p.latchkey->call(kind, "try_lock", kind, one.mine) == "true");
    CHECK(p.redisson->call(kind, "try_lock", kind, one.theirs) == "true");
    one.waits_for_redisson = p.latchkey->start("o" + kind, "try_lock", one.rival(), one.theirs, 20'000, -1);
    one.waits_for_latchkey = settling(*p.redisson, "o" + kind, "try_lock", one.rival(), one.mine, "20000", "-1");
    CHECK(wait_until([&] { return p.place.is_listened_to(one.mine) && p.place.is_listened_to(one.theirs); }));
    CHECK(p.redisson->call("observer", "await_blocked", kind, one.mine, "o" + kind, patience) == "blocked");
  }
  p.place.servers.begin_move(tag, 0, 1);
  for (auto const& one : all)
    for (auto const& name : {one.mine, one.theirs}) p.place.servers.move(name, 0, 1);  // all else is at the source
  auto const begun = clock::now();
  for (auto& one : all) {
    one.by_latchkey = p.latchkey->start(one.kind, "unlock", one.kind, one.mine);
    one.by_redisson = settling(*p.redisson, one.kind, "unlock", one.kind, one.theirs);
  }
  // What needs its keys in one place stands.
  CHECK(all.front().by_latchkey.wait_for(300ms) == std::future_status::timeout);
  p.place.end_move(tag, 0, 1);
  for (auto& one : all) {
    INFO(one.kind);
    CHECK(one.by_latchkey.get() == "released");
    CHECK(one.by_redisson.get() == "released");
    for (auto* waits : {&one.waits_for_latchkey, &one.waits_for_redisson}) {
      auto const had = waits->get();
      CHECK(had == "true");
      CHECK(had.at > begun);
    }
    CHECK(p.latchkey->call("o" + one.kind, "unlock", one.rival(), one.theirs) == "released");
    CHECK(settled(*p.redisson, "o" + one.kind, "unlock", one.rival(), one.mine) == "released");
  }
}

// It takes the dead out of the line of a fair lock, which is gone then, and may not be made anew where its slot leaves.
TEST_CASE("in a cluster a fair lock outlives a script of Redisson's that was half run", "[interop][case-t48]") {
  peers<cluster> p;
  auto const name = p.place.name(0);
  std::string const line = "redisson_lock_queue:{" + name + "}", times = "redisson_lock_timeout:{" + name + "}";
  CHECK(p.latchkey->call("h", "try_lock", "fair_lock", name) == "true");
  auto source = p.place.servers.node(0).admin();
  source.ok("RPUSH", line, "dead:1");
  source.ok("ZADD", times, 1, "dead:1");
  p.place.servers.begin_move(name, 0, 1);
  auto const failed = p.redisson->call("o", "try_lock", "fair_lock", name, 20'000, -1);
  CHECK(to_string(failed) == "failed: RedisException");
  CHECK(source.integer("EXISTS", name) == 1);
  CHECK(source.ok("CLUSTER", "COUNTKEYSINSLOT", int{latchkey::detail::slot_of(name)}).integer == 1);
  p.place.end_move(name, 0, 1);
  CHECK(p.latchkey->call("o", "try_lock", "fair_lock", name) == "false");
  auto waits = settling(*p.redisson, "o", "try_lock", "fair_lock", name, "20000", "-1");
  CHECK(wait_until([&] { return p.place.is_listened_to(name); }));
  CHECK(p.redisson->call("observer", "await_blocked", "fair_lock", name, "o", patience) == "blocked");
  CHECK(p.latchkey->call("h", "unlock", "fair_lock", name) == "released");
  CHECK(waits.get() == "true");
}

TEMPLATE_TEST_CASE("in a cluster and behind sentinels both libraries keep what the replica of a dead master has",
                   "[interop][case-t48]", cluster, sentinels) {
  peers<TestType> p;
  struct held {
    std::string kind, mine, theirs;  // latchkey's and Redisson's
    std::future<answer> waits{};     // latchkey for Redisson
  };
  std::vector<held> all;
  for (std::string const kind : shared_kinds) {
    auto& one = all.emplace_back(held{kind, p.place.name(0), p.place.name(0)});
    CHECK(p.latchkey->call("h", "try_lock", kind, one.mine) == "true");
    CHECK(p.redisson->call("h", "try_lock", kind, one.theirs) == "true");
    one.waits = p.latchkey->start("o" + kind, "try_lock", rival_of(kind), one.theirs, 60'000, -1);
    CHECK(wait_until([&] { return p.place.is_listened_to(one.theirs); }));
  }
  p.place.replicated();
  p.place.kill();
  for (auto& [kind, mine, theirs, waits] : all) {
    INFO(kind);
    auto const rival = rival_of(kind);
    CHECK(wait_until([&, &name = mine] { return p.redisson->call("o", "try_lock", rival, name) == "false"; }));
    CHECK(p.latchkey->call("o", "try_lock", rival, theirs) == "false");
    auto waits_too = settling(*p.redisson, "o", "try_lock", rival, mine, "20000", "-1");
    CHECK(wait_until([&, &name = mine] { return p.place.is_listened_to(name); }));
    CHECK(p.redisson->call("observer", "await_blocked", rival, mine, "o", patience) == "blocked");
    CHECK(p.latchkey->call("h", "unlock", kind, mine) == "released");
    CHECK(waits_too.get() == "true");
    CHECK(waits.wait_for(0s) == std::future_status::timeout);
    auto const released = settled(*p.redisson, "h", "unlock", kind, theirs);
    CHECK(released == "released");
    auto const had = peer::value_in(std::move(waits), "the waiter");
    CHECK(had == "true");
    CHECK(had.at - released.at < 1s * slowness);
  }
}

// Redisson's holder is not told that its lock is gone.
TEMPLATE_TEST_CASE("in a cluster and behind sentinels either library may have what died with a master",
                   "[interop][case-t48]", cluster, sentinels) {
  peers<TestType> p;
  auto const mine = p.place.name(0), theirs = p.place.name(0);
  p.place.cut_replication();
  CHECK(p.latchkey->call("h", "try_lock", "lock", mine) == "true");
  CHECK(settled(*p.redisson, "h", "try_lock", "lock", theirs) == "true");
  p.place.kill();
  CHECK(p.latchkey->call("observer", "await_loss", "lock", mine, patience) == "lost");
  CHECK(p.latchkey->call("h", "is_held", "lock", mine) == "false");
  CHECK(settled(*p.redisson, "o", "try_lock", "lock", mine) == "true");
  CHECK(p.latchkey->call("o", "try_lock", "lock", theirs) == "true");
  // It ends no hold but its own.
  CHECK_FALSE(settled(*p.redisson, "h", "unlock", "lock", theirs).ok);
  CHECK(p.latchkey->call("o", "unlock", "lock", theirs) == "released");
  CHECK(settled(*p.redisson, "o", "unlock", "lock", mine) == "released");
}
