// The same locks in a cluster: who holds one keeps the other library out, a release wakes the other's waiter by a
// sharded channel, and both go along when a replica takes over.
#include <interop/support/interop_world.hpp>
#include <support/catch.hpp>
#include <support/cluster_set.hpp>

#include <chrono>

using namespace latchkey::test;
using namespace std::chrono_literals;

namespace {

constexpr auto watchdog = 30s;
constexpr char const* shared_kinds[] = {"lock", "fair_lock", "read_lock", "write_lock", "fenced_lock"};

struct cluster_peers {
  cluster_set servers{2s};
  std::unique_ptr<peer> redisson = redisson_peer(watchdog, {servers.uri()});
  std::unique_ptr<peer> latchkey = latchkey_peer(watchdog, {servers.uri()});
};

// What keeps this side out.
std::string rival_of(std::string const& kind) { return kind == "read_lock" ? "write_lock" : kind; }

bool is_listened_to(cluster_set& servers, std::string const& name) {
  for (std::size_t i = 0; i < 3; ++i)
    for (auto const& channel : servers.node(i).admin().ok("PUBSUB", "SHARDCHANNELS").elements)
      if (channel.text.find(name) != std::string::npos) return true;
  return false;
}

void one_way(cluster_set& servers, peer& holder, peer& other, std::string const& kind, std::string const& name) {
  INFO(holder.library() << " > " << other.library() << ", " << kind);
  auto const rival = rival_of(kind);
  CHECK(holder.call("h", "try_lock", kind, name) == "true");
  CHECK(other.call("o", "try_lock", rival, name) == "false");
  auto waits = other.start("o", "try_lock", rival, name, 20'000, -1);
  CHECK(wait_until([&] { return is_listened_to(servers, name); }));
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

TEST_CASE("in a cluster both libraries share locks, on every node", "[interop]") {
  cluster_peers p;
  std::size_t node = 0;
  for (std::string const kind : shared_kinds) {
    one_way(p.servers, *p.redisson, *p.latchkey, kind, p.servers.name_on(node++ % 3));
    one_way(p.servers, *p.latchkey, *p.redisson, kind, p.servers.name_on(node++ % 3));
  }
}

TEST_CASE("in a cluster both libraries follow a replica that takes over", "[interop]") {
  cluster_peers p;
  auto const mine = p.servers.name_on(0), theirs = p.servers.name_on(0);
  CHECK(p.latchkey->call("h", "try_lock", "lock", mine) == "true");
  CHECK(p.redisson->call("h", "try_lock", "lock", theirs) == "true");
  p.servers.replicated();
  p.servers.fail_over(3);
  CHECK(p.redisson->call("o", "try_lock", "lock", mine) == "false");
  CHECK(p.latchkey->call("o", "try_lock", "lock", theirs) == "false");
  auto waits = p.latchkey->start("o", "try_lock", "lock", theirs, 20'000, -1);
  CHECK(p.latchkey->call("h", "unlock", "lock", mine) == "released");
  CHECK(p.redisson->call("o", "try_lock", "lock", mine, 20'000, -1) == "true");
  CHECK(p.redisson->call("h", "unlock", "lock", theirs) == "released");
  CHECK(peer::value_in(std::move(waits), "the waiter") == "true");
}
