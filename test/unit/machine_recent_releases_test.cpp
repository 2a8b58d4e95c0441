// How long a client remembers what it has released, and when it is released once more: docs/safety.md, "After a
// failover", rule 4.
#include <machine/context.hpp>
#include <machine/home.hpp>
#include <support/catch.hpp>
#include <support/unit/stories.hpp>
#include <support/unit/topologies.hpp>

#include <wire/kinds.hpp>

#include <string>

using namespace latchkey;
using namespace latchkey::test;
using namespace std::chrono_literals;

namespace {

config asking_every(milliseconds interval) {
  config made = impatient();
  made.scan_interval = interval;
  return made;
}

// Of a lease of 100 s, after 100 ms. The next master knows of the hold alone.
struct released : failover {
  explicit released(milliseconds interval) : failover(1, asking_every(interval)) {
    replicate(2);
    auto& held = w.await(w.acquire(1, {.lease = 100s}));
    copy();
    w.pass(100ms);
    w.await(w.release(held));
  }
  bool left() const { return const_cast<stepped_server&>(next).exists("k"); }
};

}  // namespace

TEST_CASE("releases: one is remembered until whoever is asked later says that the master is the same",
          "[unit][machine]") {
  released f(40s);
  f.w.pass(5s);
  f.promote(false);
  f.w.pass(30s);
  CHECK(f.left());
  f.w.pass(10s);
  CHECK_FALSE(f.left());
}

TEST_CASE("releases: who was asked soon after one says nothing of it", "[unit][machine]") {
  released f(8s);
  f.w.pass(8'500ms);  // it was asked once
  f.promote(false);
  f.w.pass(8s);
  CHECK_FALSE(f.left());
}

TEST_CASE("releases: who was asked soon after one says nothing of it later, either", "[unit][machine]") {
  released f(8s);
  f.w.await(f.w.acquire(2, {.name = "other", .lease = 100s}));  // somebody needs the server
  f.w.pass(7s);
  f.w.mute(role::scout);
  f.w.pass(1'500ms);  // it is asked
  f.promote(false);
  f.w.pass(1'700ms);
  f.w.lose(role::shared, fate::gone);  // a new connection asks who it leads to
  f.w.pass(100ms);
  f.w.mute(role::scout, false);
  f.w.pass(9s);
  CHECK_FALSE(f.left());
}

// Until it is noticed that a master is dead others name it; and its replicas have heard of nothing since.
TEST_CASE("releases: one is remembered as long as its server does not answer", "[unit][machine]") {
  for (bool const noticed : {false, true}) {
    released f(1s);
    f.w.pass(1s);
    f.w.only_host = "node0";
    if (noticed) {
      f.w.unreachable = "Connection refused";
      f.w.server.restart(true);
    } else {
      f.w.nobody_answers = true;
      f.w.deafen(role::shared);
    }
    f.w.pass(25s);
    f.promote(false);
    f.w.pass(6s);
    CHECK_FALSE(f.left());
  }
}

TEST_CASE("releases: one is remembered while a replica is away", "[unit][machine]") {
  for (bool const away : {true, false}) {
    released f(1s);
    f.w.server.redis.replicas = away ? 1 : 2;
    f.w.pass(30s);
    f.promote();
    f.w.pass(1s);
    CHECK(f.left() != away);
  }
}

TEST_CASE("releases: one is forgotten when the lease of what was held has ended", "[unit][machine]") {
  released f(1s);
  f.w.server.redis.replicas = 1;
  f.w.pass(110s);
  f.promote();
  f.w.pass(1s);
  CHECK(f.next.ran("EVALSHA release") == 0);
}

TEST_CASE("releases: a client that has nothing else to do asks until a release is safe, and then nobody",
          "[unit][machine][cluster]") {
  cluster c;
  auto& held = c.w.await(c.w.acquire(1, {.lease = 100s}));
  auto const copy = c.first.redis.data;
  bool const lost = GENERATE(true, false);
  c.w.await(c.w.release(held));
  if (lost) {
    c.w.pass(7s);
    c.first.redis.data = copy;
    nodes::take_over(c.w, 0, 0, false);
  }
  c.w.pass(lost ? 8s : 20s);
  CHECK_FALSE(c.first.exists("k"));
  c.w.pass(20s);
  int const asked = nodes::questions(c.w);
  c.w.pass(1min);
  CHECK(nodes::questions(c.w) == asked);
}

TEST_CASE("releases: of too many the oldest are forgotten", "[unit][machine]") {
  detail::recent_releases all;
  config const given;
  detail::context shared(given);
  detail::home here(shared), there(shared);
  auto const made = [&](std::uint64_t owner, instant at, instant over_at) {
    return detail::recent_releases::entry{.ran_at = &here,
                                          .of = &here,
                                          .which = &detail::reentrant_kind(),
                                          .name = "k",
                                          .owner = owner,
                                          .mode = 0,
                                          .at = at,
                                          .over_at = over_at};
  };
  instant const begin(1h);
  for (std::uint64_t i = 1; i <= detail::recent_releases::most + 2; ++i) all.add(made(i, begin, never));
  CHECK(all.size() == detail::recent_releases::most);
  CHECK(all.at(here).front().owner == 3);
  all.owe(all.at(here).front());
  all.confirm(there, begin + 1h);
  CHECK(all.size() == detail::recent_releases::most);
  all.confirm(here, begin + detail::recent_releases::margin - 1ns);
  CHECK(all.size() == detail::recent_releases::most);
  all.confirm(here, begin + detail::recent_releases::margin);
  CHECK(all.size() == 1);  // what is owed is not forgotten
  all.add(made(1, begin, begin + 1s));
  all.forget_ended(begin + 999ms);
  CHECK(all.size() == 2);
  all.forget_ended(begin + 1s);
  CHECK(all.size() == 1);
  CHECK(all.owes_any());
}

// --- of a cluster ---

TEST_CASE("releases: whose master is gone looks for the next one soon", "[unit][machine][cluster]") {
  cluster c;
  auto& held = c.w.await(c.w.acquire(1, {.lease = 100s}));
  c.second.redis.data = c.first.redis.data;
  c.w.await(c.w.release(held));
  c.w.only_host = "node0";
  c.w.unreachable = "Connection refused";
  c.first.restart(true);
  c.w.pass(3s);
  nodes::take_over(c.w, 0, 1, true);
  c.w.pass(300ms);
  CHECK_FALSE(c.second.exists("k"));
}

// The one claim that is heard is that of its election.
TEST_CASE("releases: a node that got a slot by the word of another one may have been elected again",
          "[unit][machine][cluster]") {
  cluster c;
  c.w.await(c.w.acquire(3, {.name = "other", .lease = 60s}));
  nodes::move(c.w, "k", 1);
  auto& held = c.w.await(c.w.acquire(1, {.lease = 60s}));
  auto const copy = c.second.redis.data;
  c.w.await(c.w.release(held));
  c.second.redis.data = copy;
  nodes::take_over(c.w, 1, 1, false);
  c.w.pass(6s);
  CHECK_FALSE(c.second.exists("k"));
}

// Its epoch is greater for what it got, or for an election of which nobody has heard.
TEST_CASE("releases: a node that gets a slot may have been elected again", "[unit][machine][cluster]") {
  cluster c;
  nodes::move(c.w, "other", 1);
  auto& held = c.w.await(c.w.acquire(1));
  auto& there = c.w.await(c.w.acquire(3, {.name = "other"}));
  auto const copy = c.first.redis.data;
  c.w.await(c.w.release(held));
  auto& lost = c.w.await(c.w.acquire(2, {.name = "{k}2", .lease = 60s}));
  c.w.pass(1s);
  c.first.redis.data = copy;
  nodes::take_over(c.w, 0, 0, false);
  nodes::move(c.w, "other", 0);
  c.w.pass(6s);
  CHECK_FALSE(c.first.exists("k"));
  CHECK(lost.losses == 1);
  CHECK(there.losses == 0);
}

TEST_CASE("releases: what was unanswered at a node that gets a slot is asked for again", "[unit][machine][cluster]") {
  bool const asks = GENERATE(true, false);
  cluster c;
  nodes::move(c.w, "other", 1);
  c.w.await(c.w.acquire(1));
  c.w.await(c.w.acquire(3, {.name = "other"}));
  c.w.pass(6s);
  auto const before = c.w.serial(role::shared);
  c.w.mute(role::shared);
  if (asks) c.w.acquire(2, {.name = "{k}2"});
  c.w.run();
  nodes::move(c.w, "other", 0);
  c.w.acquire(4, {.name = "other", .wait = 10ms});  // it is noticed
  c.w.pass(500ms);
  CHECK((c.w.serial(role::shared) != before) == asks);
}

TEST_CASE("releases: a node that gets slot after slot is not asked for all that it has each time",
          "[unit][machine][cluster]") {
  cluster c;
  auto& third = c.w.add_server();
  for (auto const* name : {"a", "b", "c", "d", "e"}) nodes::move(c.w, name, 1);
  c.w.await(c.w.acquire(1, {.lease = 60s}));
  c.w.await(c.w.acquire(1, {.name = "a", .lease = 60s}));
  nodes::move(c.w, "x", 2);
  c.w.await(c.w.acquire(1, {.name = "x", .lease = 60s}));
  c.w.pass(6s);
  std::size_t const before = c.first.ran("EVALSHA renew k");
  for (auto const* name : {"a", "b", "c", "d", "e"}) {
    nodes::move(c.w, name, 0);
    nodes::move(c.w, "y", 2);  // so that the next one makes its epoch greater
    c.w.acquire(9, {.name = name, .wait = 10ms});
    c.w.pass(110ms);
  }
  CHECK(c.first.ran("EVALSHA renew k") - before <= 2);
  c.w.pass(6s);
  CHECK(c.first.ran("EVALSHA renew k") - before <= 4);
  static_cast<void>(third);
}

// Whether its node was elected again before that nobody says any more.
TEST_CASE("releases: what was released in a slot that moves is released where it has gone",
          "[unit][machine][cluster]") {
  bool const used = GENERATE(true, false);  // else the claim alone says so
  cluster c;
  auto& third = c.w.add_server();
  nodes::move(c.w, "other", 2);
  nodes::move(c.w, "more", 2);
  auto& held = c.w.await(c.w.acquire(1, {.lease = 60s}));
  c.w.await(c.w.acquire(3, {.name = "other"}));
  auto const copy = c.first.redis.data;
  c.w.await(c.w.release(held));
  c.w.pass(1s);
  c.first.redis.data = copy;
  nodes::take_over(c.w, 0, 0, false);
  nodes::move(c.w, "more", 0);
  nodes::move(c.w, "k", 1);
  if (used) c.w.acquire(2, {.name = "{k}2", .wait = 1s});
  c.w.pass(used ? 90ms : 6s);
  CHECK_FALSE(c.second.exists("k"));
  std::size_t const released = c.second.ran("EVALSHA release");
  c.w.pass(6s);
  CHECK(c.second.ran("EVALSHA release") == released);
  CHECK(third.ran("EVALSHA release") == 0);
}

TEST_CASE("releases: what ran behind an ASK is not taken along by other slots that move", "[unit][machine][cluster]") {
  cluster c;
  auto& third = c.w.add_server();
  nodes::move(c.w, "more", 1);
  auto& held = c.held_and_half_moved();
  auto const copy = c.second.redis.data;
  c.w.await(c.w.release(held));
  c.w.await(c.w.acquire(3, {.name = "other", .lease = 60s}));
  nodes::move(c.w, "another", 2);
  c.w.await(c.w.acquire(3, {.name = "another", .lease = 60s}));
  c.w.pass(1s);
  nodes::take_over(c.w, 1, 1, false);
  c.second.redis.data = copy;
  c.w.pass(6s);
  CHECK_FALSE(c.second.exists("k"));
  static_cast<void>(third);
}

TEST_CASE("releases: what ran behind an ASK, and is lost there, does not come back with the slot",
          "[unit][machine][cluster]") {
  cluster c;
  auto& held = c.held_and_half_moved();
  auto const copy = c.second.redis.data;
  c.w.await(c.w.release(held));
  CHECK_FALSE(c.second.exists("k"));
  // The slot goes there, is led by one that has not heard of the release, and comes back.
  nodes::move(c.w, "k", 1);
  nodes::take_over(c.w, 1, 1, false);
  c.second.redis.data = copy;
  nodes::move(c.w, "k", 0);
  REQUIRE(c.first.exists("k"));
  c.w.pass(6s);
  CHECK_FALSE(c.first.exists("k"));
}

TEST_CASE("releases: one is counted as given back where it finds something", "[unit][machine]") {
  bool const heard = GENERATE(true, false);
  failover f;
  auto& held = f.w.await(f.w.acquire(1));
  if (!heard) f.copy();
  f.w.await(f.w.release(held));
  f.w.pass(1s);
  f.promote();
  f.w.pass(200ms);
  CHECK(f.next.ran("EVAL") == 1);
  CHECK(f.w.snapshot().given_back == (heard ? 0u : 1u));
}

// It was elected, and replaced by the one before it, of which the client has not heard yet.
TEST_CASE("releases: what a master in between has not is released at the next one", "[unit][machine]") {
  enum class by { extension, renewal, entry, force_unlock };
  auto const told = GENERATE(by::extension, by::renewal, by::entry, by::force_unlock);
  failover f;
  world& w = f.w;
  auto& held = granted(w, w.acquire(1, {.lease = 60s}));
  w.mute(role::shared);
  if (told == by::extension) w.extend(held, 90s);
  task* const again = told == by::entry ? &w.acquire(1, {.lease = 60s}) : nullptr;
  w.run();
  if (told == by::force_unlock) f.copy();
  f.promote();
  w.pass(200ms);
  if (told == by::force_unlock) w.await(w.force_unlock());
  REQUIRE(held.losses == 1);
  if (again) w.await(w.release(*again));
  REQUIRE(w.server.exists("k"));
  test::sentinels::promote(w, w.server);
  w.pass(200ms);
  CHECK_FALSE(w.server.exists("k"));
}

TEST_CASE("releases: an inner one that finds nothing, the outer hold having ended, is repeated at the next master",
          "[unit][machine]") {
  failover f;
  world& w = f.w;
  w.watch_holds = false;
  task& outer = granted(w, w.acquire(1, {.lease = 60s}));
  task& inner = granted(w, w.acquire(1, {.lease = 60s}));
  f.copy();  // the next master has not heard of more
  w.await(w.extend(inner, 1s));
  w.await(w.extend(outer, 1s));
  w.await(w.extend(inner, 1s));
  w.pass(950ms);
  w.deafen(role::shared);
  task& released = w.run(w.release(inner));
  w.pass(150ms);
  REQUIRE(outer.losses == 1);
  w.deafen(role::shared, false);
  w.await(released);
  w.drop(outer);
  w.pass(500ms);
  f.promote();
  w.pass(500ms);
  CHECK_FALSE(f.next.exists("k"));
  CHECK(w.snapshot().given_back == 1);
}
