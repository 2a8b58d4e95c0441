// What does not begin behind a failover, in virtual time: docs/topologies.md.
#include <support/catch.hpp>
#include <support/unit/stories.hpp>
#include <support/unit/topologies.hpp>

using namespace latchkey;
using namespace latchkey::test;
using namespace std::chrono_literals;

namespace {

// A client that begins nothing for 10 s behind a failover.
struct quarantined : failover {
  quarantined() : failover(1, with_quarantine()) {}
  static config with_quarantine() {
    config made = impatient();
    made.failover_quarantine = 10s;
    return made;
  }
  // The old master grants it, and the new one never hears of that.
  void stranger_takes() {
    copy();
    w.server.stranger_takes("k", "stranger:1", 60'000);
  }
  // Not before the quarantine is over.
  void gets_it_late(task& asks) {
    promote();
    w.pass(9s);
    CHECK_FALSE(asks.done());
    w.pass(2s);
    granted(w, asks);
  }
};

}  // namespace

TEST_CASE("quarantine: after a failover nothing new begins for a while, and what was begun goes on",
          "[unit][machine][case-t49]") {
  quarantined q;
  world& w = q.w;
  auto& held = w.await(w.acquire(1));
  w.pass(500ms);
  q.copy();
  q.promote();
  w.run();
  CHECK(w.noted(event_type::quarantined) == 1);
  auto& fresh = w.acquire(2, {.name = "other", .direct = true});
  auto& again = w.run(w.acquire(1));
  CHECK(again.granted());
  w.await(w.release(again));
  w.await(w.release(held));
  w.pass(9s);
  CHECK_FALSE(fresh.done());
  w.pass(2s);
  CHECK(fresh.granted());
}

TEST_CASE("quarantine: what was released is passed on to nobody", "[unit][machine][case-t49]") {
  for (bool const answered : {true, false}) {
    quarantined q;
    auto& before = q.w.await(q.w.acquire(1));
    if (!answered) q.w.mute(role::shared);
    auto& released = q.w.release(before);
    answered ? void(q.w.await(released)) : q.w.run();
    CHECK_FALSE(q.w.server.exists("k"));
    q.stranger_takes();
    auto& waiter = q.w.run(q.w.acquire(2));
    q.gets_it_late(waiter);
  }
}

TEST_CASE("quarantine: what the old master never answered is asked for when it is over", "[unit][machine][case-t49]") {
  quarantined q;
  q.w.await(q.w.acquire(7, {.name = "warm"}));
  q.stranger_takes();
  q.w.mute(role::shared);
  auto& asks = q.w.run(q.w.acquire(2));
  q.gets_it_late(asks);
}

TEST_CASE("quarantine: a slot that moves takes nothing out of it", "[unit][machine][cluster]") {
  cluster c(1, quarantined::with_quarantine());
  world& w = c.w;
  auto& third = w.add_server();
  nodes::move(w, "other", 1);
  auto& held = w.await(w.acquire(1));
  w.await(w.acquire(2, {.name = "other"}));
  w.pass(20s);
  third.redis.data = c.first.redis.data;
  nodes::take_over(w, 0, 2, true);
  auto& asks = w.acquire(3, {.name = "{k}2"});
  w.pass(3s);
  CHECK_FALSE(asks.done());
  nodes::move(w, "k", 1);
  w.await(w.release(held));
  w.run();
  CHECK_FALSE(asks.done());
  CHECK_FALSE(c.second.exists("{k}2"));
  w.pass(30s);
  CHECK(asks.granted());
}

// Whether the node between was replaced before that nobody knows.
TEST_CASE("quarantine: where the second of two nodes leads that have nothing to show but MOVED nothing begins",
          "[unit][machine][cluster]") {
  cluster c(1, quarantined::with_quarantine());
  world& w = c.w;
  auto& third = w.add_server();
  nodes::move(w, "other", 1);
  nodes::move(w, "more", 2);
  for (auto const* name : {"k", "other", "more"}) w.await(w.acquire(1, {.name = name, .lease = 100s}));
  w.pass(33s);
  w.mute(role::scout);
  nodes::move(w, "k", 1);
  auto& asks = w.run(w.acquire(2, {.name = "{k}2"}));
  CHECK(asks.granted());
  nodes::move(w, "k", 2);
  auto& fresh = w.run(w.acquire(2, {.name = "{k}3"}));
  CHECK_FALSE(fresh.done());
  w.pass(9s);
  CHECK_FALSE(third.exists("{k}3"));
  w.pass(30s);
  CHECK(fresh.granted());
}
