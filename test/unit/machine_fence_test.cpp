// Rules 7 and 8 of docs/safety.md, "After a failover": what a master that was replaced may still run when it is master
// again.
#include <support/catch.hpp>
#include <support/unit/stories.hpp>
#include <support/unit/topologies.hpp>

#include <wire/kinds.hpp>

using namespace latchkey;
using namespace latchkey::test;
using namespace std::chrono_literals;

namespace {

config brief() { return {.check_lock_synced_replicas = false, .connect_timeout = 2s, .timeout = 3s}; }

// History F5: a release that the first master has not read was repeated at the second one, and the first is to be
// master again.
struct fail_back {
  explicit fail_back(config const& given = brief()) : w(given, 2, world::known::by_sentinel), next(w.add_server()) {
    w.resolve_to(w.server);
    w.late_bytes = false;
    w.await(w.acquire(9, {.name = "warm"}));
    w.await(w.acquire(9, {.name = "warm", .wait = 1ms, .client = 1}));
    task& held = w.await(w.acquire(1));
    w.pass(500ms);
    w.deafen(role::shared);
    w.run(w.release(held));
    next.redis.data = w.server.redis.data;
  }
  void promote_next() {
    test::sentinels::promote(w, next);
    w.until([&] { return next.ran("EVALSHA release") == 1; });
  }
  // With what the second has now.
  void promote_first_again() {
    next.hang_up();
    w.server.redis.data = next.redis.data;
    test::sentinels::promote(w, w.server);
    w.pass(200ms);  // both clients have heard of it
    w.server.run_left_behind();
  }

  world w;
  stepped_server& next;
};

// The same owner extends another lock, which the first master has not read, either.
struct unread_extension : fail_back {
  unread_extension() : other(w.acquire(1, {.name = "other", .lease = 60s})) {
    w.deafen(role::shared, false);
    w.await(other);
    w.deafen(role::shared);
    extension = &w.extend(other, 70s);
  }
  void replace_first() {
    w.run();
    next.redis.data = w.server.redis.data;
    w.nobody_answers = true;
    w.only_host = "node0";
    test::sentinels::promote(w, next);
    w.pass(10ms);
  }

  task& other;
  task* extension = nullptr;
};

// A release that the first node of a cluster has not read, since when it cannot be reached by the name that it had.
struct unread : cluster {
  explicit unread(config const& given = brief()) : cluster(1, given) {
    w.late_bytes = false;
    task& held = w.await(w.acquire(1));
    w.pass(500ms);
    w.deafen(role::shared);
    w.release(held);
    w.run();
    w.nobody_answers = true;
    w.only_host = "node0";
  }
};

// The owner holds, by a request of which the first master may still run a copy.
struct held_again {
  explicit held_again(config const& given = brief(), bool reachable = false, milliseconds lease = 4s)
      : w(given, 1, world::known::by_sentinel), next(w.add_server()) {
    w.resolve_to(w.server);
    w.late_bytes = false;
    w.await(w.acquire(9, {.name = "warm"}));
    w.deafen(role::shared);
    task& held = w.run(w.acquire(1, {.lease = lease}));
    w.nobody_answers = !reachable;
    w.only_host = "node0";
    test::sentinels::promote(w, next);
    w.await(held);
    outer = &held;
  }

  world w;
  stepped_server& next;
  task* outer = nullptr;
};

}  // namespace

TEST_CASE("case t32: a late release of a master that is one again ends nobody's new hold",
          "[unit][machine][case-t32]") {
  for (bool const reachable : {true, false}) {
    fail_back f;
    f.w.nobody_answers = !reachable;
    f.w.only_host = "node0";
    f.promote_next();
    auto& again = f.w.run(f.w.acquire(1));
    CHECK(again.done() == reachable);  // the first master has said that nothing more runs there; or it has not
    f.w.nobody_answers = false;
    f.promote_first_again();
    auto& other = f.w.acquire(1, {.wait = 4s, .client = 1});
    f.w.pass(5s);  // the world looks after every event whether there are two holders
    CHECK(again.granted());
    CHECK_FALSE(other.granted());
    CHECK(f.w.server.count("k", f.w.field(1)) == 1);
  }
}

TEST_CASE("rule 8: while a replaced master owes an answer its owner waits, and the queue behind it",
          "[unit][machine]") {
  fail_back f;
  f.w.nobody_answers = true;
  f.w.only_host = "node0";
  f.promote_next();
  auto& again = f.w.acquire(1);
  auto& elsewhere = f.w.run(f.w.acquire(1, {.name = "other"}));
  CHECK(elsewhere.granted());
  CHECK_FALSE(again.done());
  auto& other = f.w.run(f.w.acquire(2));
  CHECK_FALSE(other.done());  // behind it in the queue
  f.w.pass(1s);
  CHECK_FALSE(again.done());
  f.w.pass(1500ms);
  CHECK(again.granted());
  CHECK(f.w.noted(event_type::unfenced) == 1);
}

TEST_CASE("rule 8: a master that is gone is not waited for", "[unit][machine]") {
  fail_back f;
  f.w.unreachable = "Connection refused";
  f.w.only_host = "node0";
  auto const before = f.w.now;
  f.promote_next();
  granted(f.w, f.w.acquire(1));
  CHECK(f.w.now - before < 200ms);
  CHECK(f.w.noted(event_type::unfenced) == 0);
}

TEST_CASE("rule 8: an extension waits for a late release, too", "[unit][machine]") {
  world w(brief(), 1, world::known::by_sentinel);
  auto& next = w.add_server();
  w.resolve_to(w.server);
  w.late_bytes = false;
  task& outer = w.acquire(1);
  task& inner = w.await(w.acquire(1));
  w.pass(500ms);
  w.deafen(role::shared);
  w.run(w.release(inner));
  next.redis.data = w.server.redis.data;
  w.nobody_answers = true;
  w.only_host = "node0";
  test::sentinels::promote(w, next);
  w.until([&] { return next.ran("EVALSHA release") == 1; });
  w.run();
  auto& longer = w.run(w.extend(outer, 20s));
  CHECK_FALSE(longer.done());
  w.pass(2500ms);
  CHECK(longer.yes);
  CHECK(w.noted(event_type::unfenced) == 1);
}

TEST_CASE("rule 8: an extension that waits keeps no release waiting", "[unit][machine]") {
  unread_extension f;
  f.replace_first();
  auto& end = f.w.await(f.w.release(f.other));
  CHECK(end.released == release_result::released);
  CHECK(f.extension->done());
  CHECK_FALSE(f.extension->yes);
  CHECK_FALSE(f.next.exists("other"));
}

TEST_CASE("rule 8: kinds that share their data share the wait", "[unit][machine]") {
  fail_back f;
  f.w.nobody_answers = true;
  f.w.only_host = "node0";
  f.promote_next();
  f.w.run();  // the release is answered
  auto& fenced = f.w.acquire(1, {.which = &detail::fenced_kind()});
  f.w.pass(1s);
  CHECK_FALSE(fenced.done());
  f.w.pass(1500ms);
  CHECK(fenced.granted());
}

TEST_CASE("rule 8: a network that does not lead to a replaced master says nothing of it", "[unit][machine]") {
  fail_back f;
  f.w.unreachable = "No route to host";
  f.w.only_host = "node0";
  f.promote_next();
  auto& again = f.w.acquire(1);
  f.w.pass(1s);
  CHECK_FALSE(again.done());
  f.w.pass(1500ms);
  CHECK(again.granted());
  CHECK(f.w.noted(event_type::unfenced) == 1);
}

TEST_CASE("rule 7: a node that has slots again owes nothing of before, whichever shard asks it now",
          "[unit][machine][cluster]") {
  unread c;
  c.second.redis.data = c.first.redis.data;
  nodes::take_over(c.w, 0, 1, false);
  c.w.until([&] { return c.w.noted(event_type::unfenced) == 1; });
  auto& again = c.w.await(c.w.acquire(1));
  nodes::move(c.w, "k", 0);
  c.w.nobody_answers = false;
  c.w.await(c.w.acquire(2, {.name = "{k}2"}));  // hears where the slot is
  CHECK(c.first.run_left_behind() == 0);
  CHECK(c.first.count("k", c.w.field(1)) == 1);
  c.w.pass(1s);
  CHECK(again.losses == 0);
  CHECK(c.w.snapshot().nodes.at(0).kills_owed + c.w.snapshot().nodes.at(1).kills_owed == 0);
}

TEST_CASE("rule 8: what another shard owes keeps its owners waiting as long as it did", "[unit][machine][cluster]") {
  unread c;
  c.second.redis.data = c.first.redis.data;
  nodes::take_over(c.w, 0, 1, false);
  c.w.until([&] { return c.second.ran("EVALSHA release") == 1; });
  auto& again = c.w.acquire(1);
  nodes::move(c.w, "k", 0);
  c.w.acquire(2, {.name = "{k}2"});
  c.w.pass(1500ms);
  CHECK(c.w.noted(event_type::unfenced) == 0);
  c.w.pass(1s);
  CHECK(c.w.noted(event_type::unfenced) == 1);
  c.w.nobody_answers = false;
  granted(c.w, again);
  CHECK(c.first.run_left_behind() == 0);
}

TEST_CASE("rule 8: a node that is gone owes nothing, whichever shard asks it", "[unit][machine][cluster]") {
  unread c;
  c.second.redis.data = c.first.redis.data;
  nodes::take_over(c.w, 0, 1, false);
  c.w.until([&] { return c.second.ran("EVALSHA release") == 1; });
  auto& again = c.w.run(c.w.acquire(1));
  CHECK_FALSE(again.done());
  auto const before = c.w.now;
  nodes::move(c.w, "there", 0);
  c.w.nobody_answers = false;
  c.w.unreachable = "Connection refused";
  c.w.acquire(2, {.name = "there"});
  granted(c.w, again);
  CHECK(c.w.now - before < 200ms);
  CHECK(c.w.noted(event_type::unfenced) == 0);
}

TEST_CASE("rule 7: what a node owes under one of its names is asked for under the other", "[unit][machine][cluster]") {
  config given = brief();
  given.tls.ca_file = "ca.crt";
  unread c(given);
  c.w.nodes_announce_names = true;
  c.w.until([&] { return c.first.ran("EVALSHA release") == 1; });
  auto& again = c.w.run(c.w.acquire(1));
  CHECK(again.granted());
  CHECK(c.first.run_left_behind() == 0);
  c.w.pass(3s);
  CHECK(again.losses == 0);
  CHECK(c.w.noted(event_type::unfenced) == 0);
}

TEST_CASE("rule 8: who enters again waits for a late acquire, which would take it back", "[unit][machine]") {
  for (bool const reachable : {true, false}) {
    held_again f(brief(), reachable);
    auto& inner = f.w.run(f.w.acquire(1, {.lease = 60s}));
    CHECK(inner.done() == reachable);
    granted(f.w, inner);
    CHECK(f.w.noted(event_type::unfenced) == (reachable ? 0u : 1u));
    if (!reachable) continue;
    f.next.hang_up();
    f.w.server.redis.data = f.next.redis.data;
    test::sentinels::promote(f.w, f.w.server);
    f.w.pass(200ms);
    f.w.server.run_left_behind();
    CHECK(f.w.server.count("k", f.w.field(1)) == 2);
    CHECK(f.w.server.ttl("k") > 50'000);
  }
}

TEST_CASE("rule 8: who enters again without the server waits for a late acquire, too", "[unit][machine]") {
  config const given = with_turns(brief());
  held_again f(given, false, 20s);
  auto& inner = f.w.run(f.w.acquire(1));
  CHECK_FALSE(inner.done());
  f.w.nobody_answers = false;
  f.next.hang_up();
  f.w.server.redis.data = f.next.redis.data;
  test::sentinels::promote(f.w, f.w.server);
  f.w.await(inner);
  f.w.server.run_left_behind();
  CHECK(inner.granted());
  CHECK(f.w.server.count("k", f.w.field(1)) == 2);
  CHECK(f.w.server.ttl("k") > 20'000);
  CHECK(f.w.noted(event_type::unfenced) == 0);
}

TEST_CASE("rule 8: nobody has a turn of an owner for whom a late acquire may run", "[unit][machine]") {
  config given = with_turns(brief());
  given.local_handoff.max_time = 10s;  // the grant came late
  held_again f(given, false, 20s);
  auto& other = f.w.acquire(2);
  f.w.pass(1ms);
  f.w.drop(*f.outer);
  CHECK_FALSE(other.done());
  f.w.await(other);
  CHECK(f.next.has("k", f.w.field(2)));
}

TEST_CASE("rule 8: who waits to enter again keeps no release waiting", "[unit][machine]") {
  held_again f;
  bool const dropped = GENERATE(false, true);
  auto& inner = f.w.acquire(1, {.lease = 60s});
  auto& last = f.w.run(f.w.acquire(1, {.lease = 60s}));
  if (dropped) {
    f.w.drop(*f.outer).run();
  } else {
    auto& end = f.w.run(f.w.release(*f.outer));
    CHECK(end.done());
    CHECK(end.released == release_result::released);
  }
  CHECK_FALSE(f.next.exists("k"));
  CHECK_FALSE(inner.done());
  f.w.await(last);
  CHECK(inner.granted());
  CHECK(last.granted());
  CHECK(f.next.count("k", f.w.field(1)) == 2);
  for (task* one : {&inner, &last}) f.w.await(f.w.release(*one));
  CHECK_FALSE(f.next.exists("k"));
}

TEST_CASE("rule 8: a release that came while another was under way passes who waits to enter again",
          "[unit][machine]") {
  held_again f;
  f.w.nobody_answers = false;
  task& second = f.w.await(f.w.acquire(1, {.lease = 4s}));
  f.w.nobody_answers = true;
  f.w.deafen(role::shared);
  auto& first_end = f.w.release(second);  // its answer makes the others go on
  auto& inner = f.w.acquire(1, {.lease = 60s});
  auto& end = f.w.run(f.w.release(*f.outer));
  f.w.only_host = "node1";  // the second one is replaced in its turn, by the first
  f.w.server.redis.data = f.next.redis.data;
  test::sentinels::promote(f.w, f.w.server);
  f.w.pass(10ms);
  CHECK(first_end.done());
  CHECK(end.done());
  CHECK_FALSE(inner.done());
  granted(f.w, inner);
  CHECK(f.w.server.count("k", f.w.field(1)) == 1);
}

TEST_CASE("rule 8: an extension that makes way takes nobody along who came behind it", "[unit][machine]") {
  unread_extension f;
  auto& inner = f.w.acquire(1, {.name = "other", .lease = 90s});
  f.replace_first();
  auto& end = f.w.run(f.w.release(f.other));
  CHECK(end.done());
  CHECK(end.released == release_result::released);
  CHECK(f.extension->done());
  granted(f.w, inner);
}

TEST_CASE("rule 8: who made way for a release that no server hears of goes on", "[unit][machine]") {
  bool const dropped = GENERATE(false, true);
  config const given = with_turns(brief());
  world w(given, 1, world::known::by_sentinel);
  auto& next = w.add_server();
  w.resolve_to(w.server);
  w.late_bytes = false;
  w.await(w.acquire(1, {.lease = 20s}));
  auto& turn = w.acquire(1, {.lease = 10s});
  CHECK(turn.granted());
  w.pass(100ms);
  next.redis.data = w.server.redis.data;
  w.deafen(role::shared);
  auto& late = w.run(w.acquire(1, {.lease = 40s}));
  w.nobody_answers = true;
  w.only_host = "node0";
  test::sentinels::promote(w, next);
  w.await(late);
  auto& inner = w.run(w.acquire(1, {.lease = 60s}));
  CHECK_FALSE(inner.done());
  w.pass(1ms);
  std::size_t const before = next.log.size();
  if (dropped)
    w.drop(turn);
  else
    w.release(turn);
  w.run();
  CHECK(next.log.size() == before);
  CHECK_FALSE(inner.done());
  w.pass(2500ms);
  CHECK(inner.granted());
  CHECK(next.count("k", w.field(1)) == 3);
}
