// Masters of a cluster that let their replicas take over, again and again. docs/topology-cases.md.
#include <topologies/cluster_world.hpp>

#include <algorithm>

using namespace latchkey;
using namespace latchkey::test;

namespace {

// The shards take turns, since a node cannot be elected twice in a short time. How long who waited was not woken, at
// most.
std::chrono::nanoseconds fail_over_often(cluster_world& w, std::size_t times) {
  client other(w.servers.uri(), cluster_config(w.log));
  std::vector<std::string> names;
  for (std::size_t i = 0; i < 3; ++i) names.push_back(w.servers.name_on(i));
  std::chrono::nanoseconds longest{};
  for (std::size_t i = 0; i < times; ++i) {
    std::size_t const shard = i % names.size(), replica = w.servers.follower(shard, shard + 3);
    auto held = w.own->get_lock(names[shard]).acquire({.wait = patience});
    must_happen(held.held(), "the lock is held");
    waiter waits(other, names[shard]);
    must_happen(wait_until([&] { return other.snapshot().waiting == 1; }), "somebody waits for it");
    must_happen(w.is_listened_to(2 * shard + 3 - replica), "and listens");
    w.servers.replicated();
    w.servers.fail_over(replica);
    if (i % 10 == 0) must_happen(held.extend(30s), "the hold is there");
    auto const begun = std::chrono::steady_clock::now();
    must_happen(held.release() == release_result::released, "it is released");
    longest = std::max<std::chrono::nanoseconds>(longest, waits.had.get() - begun);
  }
  must_happen(w.log.count_after(*w.own, event_type::lost) == 0, "nothing is lost");
  must_happen(w.log.count_after(other, event_type::lost) == 0, "by the other one neither");
  return longest;
}

}  // namespace

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
  CHECK(w.log.count_after(*w.own, event_type::lost) == 0);
}

TEST_CASE("case t29: a replica takes over by consent 200 times, and who waits is woken",
          "[topologies][cluster][case-t29]") {
  cluster_world first(1s), second(1s);  // side by side, since it takes long
  auto beside = std::async(std::launch::async, [&] { return fail_over_often(second, 100); });
  auto const longest = fail_over_often(first, 100);
  CHECK(longest < bound(100ms, 2s));
  CHECK(beside.get() < bound(100ms, 2s));
}
