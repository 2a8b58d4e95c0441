// What a snapshot counts of servers that are replaced, and of replicas, in virtual time.
#include <support/catch.hpp>
#include <support/unit/stories.hpp>
#include <support/unit/topologies.hpp>

#include <algorithm>

using namespace latchkey;
using namespace latchkey::test;
using namespace std::chrono_literals;

namespace {

node_stats seen_at(world const& w, std::string_view address) {
  auto const all = w.snapshot().nodes;
  auto const found = std::find_if(all.begin(), all.end(), [&](auto const& one) { return one.address == address; });
  REQUIRE(found != all.end());
  return *found;
}

}  // namespace

TEST_CASE("snapshot: waits for replicas are counted once each, met or failed", "[unit][machine]") {
  for (bool const direct : {false, true}) {
    INFO(direct);
    replicated r(1);
    r.w.await(r.w.acquire(9, {.name = "warm", .direct = true}));
    r.w.pass(500ms);
    auto const before = r.w.snapshot();
    CHECK(before.waits_met == r.waits(""));
    CHECK(before.waits_failed == 0);
    auto& held = r.w.await(r.w.acquire(1, {.direct = direct}));
    CHECK(r.w.snapshot().waits_met == before.waits_met + 1);
    r.w.await(r.w.release(held, direct));
    CHECK(r.w.snapshot().waits_met == before.waits_met + 1);

    r.w.server.redis.synced_replicas = 0;
    auto& tried = r.w.await(r.w.once(1, {.direct = direct}));
    CHECK(tried.error == errc::not_synced);
    auto const failed = r.w.snapshot().waits_failed;
    CHECK(failed == 5);  // the first, and as many as retry_attempts allow
    CHECK(r.w.snapshot().waits_met == before.waits_met + 1);
    r.w.run();

    // Its connection is lost before it is answered.
    r.w.server.redis.synced_replicas = 2;
    r.w.pass(2s);
    auto const sent = r.waits("");
    auto& lost = r.w.acquire(2, {.name = "lost", .direct = direct});
    r.w.until([&] { return r.waits("") > sent; });
    CHECK_FALSE(lost.done());
    r.w.lose(direct ? role::direct : role::shared, fate::late);
    granted(r.w, lost);
    CHECK(r.w.snapshot().waits_failed == failed + 1);
    CHECK(r.w.snapshot().waits_met + r.w.snapshot().waits_failed == r.waits(""));
  }
}

TEST_CASE("snapshot: a failover is a switch, and so is an election of the same server", "[unit][machine]") {
  failover f;
  f.w.await(f.w.acquire(1));
  CHECK(f.w.noted(event_type::topology_changed) == 1);
  CHECK(f.w.snapshot().switches == 0);  // the first server of all
  f.copy();
  f.promote();
  f.w.pass(1'100ms);
  CHECK(f.w.snapshot().switches == 1);
  test::sentinels::promote(f.w, f.w.server, false);
  f.promote(false);
  f.w.pass(1'100ms);
  CHECK(f.w.snapshot().switches == 2);
  CHECK(f.w.noted(event_type::topology_changed) == 3);
}

TEST_CASE("snapshot: slots that another node has are a switch", "[unit][machine][cluster]") {
  cluster c;
  nodes::move(c.w, "other", 1);
  auto& held = c.w.await(c.w.acquire(1));
  c.w.await(c.w.acquire(2, {.name = "other"}));
  CHECK(c.w.noted(event_type::topology_changed) == 2);
  CHECK(c.w.snapshot().switches == 0);
  nodes::move(c.w, "k", 1);
  c.w.await(c.w.extend(held, 20s));
  c.w.pass(1s);
  CHECK(c.w.snapshot().switches == 1);
  nodes::take_over(c.w, 1, 1, false);
  c.w.pass(6s);
  CHECK(c.w.snapshot().switches == 2);
  CHECK(c.w.noted(event_type::topology_changed) == 4);
}

TEST_CASE("snapshot: a connection that is given up with calls unanswered is an orphan", "[unit][machine]") {
  failover f;
  f.w.await(f.w.acquire(1));
  f.w.run();
  f.w.lose(role::shared, fate::gone);  // nothing was asked
  f.w.pass(1s);
  CHECK(f.w.snapshot().orphans == 0);
  f.copy();
  f.w.mute(role::shared);
  auto& first = f.w.acquire(2, {.name = "first"});
  auto& second = f.w.run(f.w.acquire(3, {.name = "second"}));
  f.promote();
  f.w.await(first, second);
  CHECK(f.w.snapshot().orphans == 1);
  CHECK(f.w.snapshot().unanswered == 2);
  f.w.pass(1s);
  CHECK(f.w.snapshot().kills == 1);
  CHECK(f.w.snapshot().in_doubt == 0);
  CHECK(f.w.snapshot().orphans == 1);
}

TEST_CASE("snapshot: links are the connections to each node that are ready", "[unit][machine][cluster]") {
  cluster c;
  nodes::move(c.w, "other", 1);
  c.w.await(c.w.acquire(1));
  c.w.await(c.w.acquire(2, {.name = "other"}));
  c.w.run();
  CHECK(seen_at(c.w, "node0:1").links == 1);
  CHECK(seen_at(c.w, "node1:1").links == 1);
  auto& waits = c.w.acquire(3);  // listens
  c.w.run();
  CHECK(seen_at(c.w, "node0:1").links == 2);
  auto& borrows = c.w.run(c.w.acquire(4, {.name = "other", .direct = true}));
  CHECK(seen_at(c.w, "node0:1").links == 2);
  CHECK(seen_at(c.w, "node1:1").links == 3);
  CHECK_FALSE((waits.done() || borrows.done()));
  c.w.unreachable = "no route";
  c.w.lose(role::shared, fate::gone).run();
  CHECK(seen_at(c.w, "node0:1").links + seen_at(c.w, "node1:1").links < 5);
}
