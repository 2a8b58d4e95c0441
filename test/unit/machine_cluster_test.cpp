// A client of a cluster whose slots move, in virtual time: docs/topologies.md.
#include <support/catch.hpp>
#include <support/unit/stories.hpp>
#include <support/unit/topologies.hpp>
#include <wire/cluster.hpp>
#include <wire/kinds.hpp>

#include <algorithm>

using namespace latchkey;
using namespace latchkey::test;
using namespace std::chrono_literals;

TEST_CASE("cluster: a client asks a node who has the slots, and locks there", "[unit][machine][cluster]") {
  cluster c;
  nodes::move(c.w, "other", 1);
  auto& here = c.w.acquire(1);
  auto& there = c.w.acquire(2, {.name = "other"});
  c.w.await(here, there);
  CHECK(c.first.count("k", c.w.field(1)) == 1);
  CHECK(c.second.count("other", c.w.field(2)) == 1);
  CHECK(c.w.snapshot().redirected == 0);
  CHECK(c.w.noted(event_type::topology_changed) == 2);
  c.w.await(c.w.release(here));
  c.w.await(c.w.release(there));
  CHECK_FALSE(c.first.exists("k"));
  CHECK_FALSE(c.second.exists("other"));
}

TEST_CASE("cluster: names of one turn leave in a call each", "[unit][machine][cluster]") {
  cluster c;
  c.w.await(c.w.acquire(9, {.name = "warm"}));
  std::vector<task*> all;
  for (auto const* name : {"a", "b", "c"}) all.push_back(&c.w.acquire(1, {.name = name}));
  for (task* one : all) c.w.await(*one);
  CHECK(c.first.ran("EVALSHA acquire a ") + c.first.ran("EVALSHA acquire b ") + c.first.ran("EVALSHA acquire c ") == 3);
  CHECK(c.w.snapshot().redirected == 0);
}

TEST_CASE("cluster: names of one hash tag leave in one call, with the first of them", "[unit][machine][cluster]") {
  cluster c;
  c.w.await(c.w.acquire(9, {.name = "warm"}));
  auto const scripts = [&] { return c.w.snapshot().scripts; };
  auto const before = scripts();
  std::vector<task*> all;
  for (auto const* name : {"{k}1", "a", "{k}2", "{m}1", "{k}3", "{m}2"}) all.push_back(&c.w.acquire(1, {.name = name}));
  for (task* one : all) c.w.await(*one);
  CHECK(scripts() == before + 3);
  CHECK(c.first.ran("EVALSHA acquire {k}1 {k}2 {k}3 ") == 1);
  c.w.pass(11s);                       // the watchdog renews
  CHECK(scripts() == before + 3 + 4);  // that of `warm`, too
  for (task* one : all) CHECK(c.first.ttl(std::string(one->name)) > 25'000);
  auto const renewed = scripts();
  std::vector<task*> ended;
  for (task* one : all) ended.push_back(&c.w.release(*one));
  for (task* one : ended) c.w.await(*one);
  CHECK(scripts() == renewed + 3);
}

TEST_CASE("cluster: a slot that no node has is told of once, and waited for", "[unit][machine][cluster]") {
  cluster c;
  nodes::uncover(c.w, "k");
  auto& waits = c.w.acquire(1);
  c.w.await(c.w.acquire(2, {.name = "other"}));
  c.w.pass(5s);
  CHECK_FALSE(waits.done());
  REQUIRE(c.w.noted(event_type::slot_uncovered) == 1);
  auto const& told = *std::find_if(c.w.notes.begin(), c.w.notes.end(),
                                   [](auto const& one) { return one.type == event_type::slot_uncovered; });
  CHECK(told.text == "slots " + std::to_string(detail::slot_of("k")) + " have no node");
  nodes::cover(c.w, "k", 1);
  granted(c.w, waits);
  CHECK(c.second.exists("k"));
}

TEST_CASE("cluster: whoever asks until the end for a slot that no node has hears that", "[unit][machine][cluster]") {
  cluster c;
  nodes::uncover(c.w, "k");
  std::string const words = "slot " + std::to_string(detail::slot_of("k")) + " has no node";
  auto& alone = c.w.acquire(1, {.wait = 1s});  // nothing else is asked of any node
  c.w.await(alone);
  CHECK(alone.error == errc::no_master);
  CHECK(alone.text == words);
  c.w.await(c.w.acquire(8, {.name = "other"}));
  std::vector<task*> const all{&c.w.acquire(1, {.wait = 2s}), &c.w.acquire(2, {.wait = 2s}), &c.w.once(3),
                               &c.w.ask(detail::query::is_locked), &c.w.force_unlock()};
  c.w.pass(60s);
  for (task const* one : all) {
    CHECK(one->error == errc::no_master);
    CHECK(one->text == words);
  }
  granted(c.w, c.w.acquire(8, {.name = "other"}));
}

TEST_CASE("cluster: who asks for a slot while no node answers hears no more than that", "[unit][machine][cluster]") {
  cluster c;
  nodes::uncover(c.w, "k");
  auto& waits = c.w.acquire(1, {.wait = 8s});
  c.w.pass(2s);
  c.w.unreachable = "no route";
  for (auto* node : {&c.first, &c.second}) node->hang_up();
  c.w.lose(role::scout, fate::gone);
  c.w.await(waits);
  CHECK(waits.error == errc::connect_failed);
}

TEST_CASE("cluster: one that has to be whole is refused until it is, once", "[unit][machine][cluster]") {
  config given = impatient();
  given.check_slots_coverage = true;
  cluster c(1, given);
  nodes::uncover(c.w, "k");
  auto& refused = c.w.await(c.w.acquire(1, {.name = "other"}));
  CHECK(refused.error == errc::no_master);
  nodes::cover(c.w, "k", 1);
  auto& held = granted(c.w, c.w.acquire(1, {.name = "other"}));
  nodes::uncover(c.w, "third");
  c.w.pass(6s);
  c.w.await(c.w.release(held));
}

namespace {

void check_woken_by_channel(cluster& c, bool sharded) {
  auto& held = c.w.await(c.w.acquire(1));
  auto& waits = c.w.acquire(1, {.client = 1});
  c.w.pass(10ms);
  CHECK((c.first.ran("SSUBSCRIBE") > 0) == sharded);
  CHECK((c.first.ran("SUBSCRIBE") > 0) != sharded);
  c.w.release(held);
  c.w.pass(10ms);
  CHECK(waits.granted());
}

}  // namespace

TEST_CASE("cluster: channels are sharded unless the settings forbid it", "[unit][machine][cluster]") {
  for (bool const sharded : {true, false}) {
    config given = impatient();
    if (!sharded) given.sharded_subscription = false;
    cluster c(2, given);
    check_woken_by_channel(c, sharded);
  }
}

TEST_CASE("cluster: addresses of nodes can be mapped, those in MOVED, too", "[unit][machine][cluster][case-t11]") {
  config given = impatient();
  given.nat_map = [](std::string const& host, std::uint16_t port) {
    return std::pair("real" + host.substr(4), static_cast<std::uint16_t>(port + 1));
  };
  cluster c(1, given);
  c.w.await(c.w.acquire(1, {.name = "other"}));
  nodes::move(c.w, "k", 1);
  auto& held = c.w.await(c.w.acquire(2));
  CHECK(c.second.count("k", c.w.field(2)) == 1);
  auto const told = [&](event_type what, std::string_view words) {
    return std::any_of(c.w.notes.begin(), c.w.notes.end(),
                       [&](auto const& one) { return one.type == what && one.text.find(words) != std::string::npos; });
  };
  CHECK(told(event_type::topology_changed, "to real0:2"));
  CHECK(told(event_type::redirected, "to real1:2"));
  CHECK_FALSE(told(event_type::topology_changed, "node"));
  c.w.await(c.w.release(held));
}

namespace {

void refuse_info(stepped_server& one) {
  one.refuse("INFO server", "NOPERM this user has no permissions to run the 'info' command", -1);
}

}  // namespace

TEST_CASE("cluster: a server that does not say how old it is is asked for sharded channels",
          "[unit][machine][cluster]") {
  auto const [said, sharded] = GENERATE(table<std::string, bool>({
      {"", true},
      {"NOPERM this user has no permissions to run the 'pubsub|shardnumsub' command", true},
      {"NOPERM this user has no permissions to run the 'pubsub' command or its subcommand", false},
      {"ERR Unknown subcommand or wrong number of arguments for 'SHARDNUMSUB'. Try PUBSUB HELP.", false},
  }));
  cluster c(2);
  refuse_info(c.first);
  if (!said.empty()) c.first.refuse("PUBSUB SHARDNUMSUB", said, -1);
  check_woken_by_channel(c, sharded);
  CHECK(c.first.ran("PUBSUB SHARDNUMSUB") == 2);  // each client once
  auto const first = [&](std::string_view start) {
    return std::find_if(c.first.log.begin(), c.first.log.end(),
                        [=](auto const& one) { return one.starts_with(start); });
  };
  CHECK(first("PUBSUB") < first("EVAL"));  // which publishes
}

TEST_CASE("cluster: no server is asked for sharded channels without need", "[unit][machine][cluster]") {
  config given = impatient();
  given.sharded_subscription = true;
  cluster told(1, given), says;
  refuse_info(told.first);
  world alone;
  refuse_info(alone.server);
  for (world* one : {&told.w, &says.w, &alone}) {
    one->await(one->acquire(1));
    CHECK(one->server.ran("PUBSUB") == 0);
  }
}

TEST_CASE("cluster: connections to a node that is not needed are closed, but for the last",
          "[unit][machine][cluster]") {
  cluster c;
  auto const moved = detail::slot_of("there");
  nodes::move(c.w, "there", 1);
  auto& held = c.w.await(c.w.acquire(1));
  auto const turn = [&] {
    auto& there = granted(c.w, c.w.acquire(1, {.name = "there"}));
    c.w.await(c.w.release(there));
  };
  REQUIRE(nodes::owner_of(c.w, moved) == 1);
  turn();
  c.w.pass(8s);
  turn();
  c.w.pass(9s);
  CHECK(c.second.connected() > 0);
  c.w.pass(2s);
  CHECK(c.second.connected() == 0);
  CHECK(c.first.connected() > 0);  // what is held there is renewed
  CHECK(c.w.noted(event_type::disconnected) == 0);
  auto const at = [&](std::string const& address) {
    auto const all = c.w.snapshot().nodes;
    auto const found = std::find_if(all.begin(), all.end(), [&](auto const& one) { return one.address == address; });
    REQUIRE(found != all.end());
    return *found;
  };
  CHECK((at("node0:1").connected && !at("node1:1").connected));
  CHECK((at("node0:1").held == 1 && at("node1:1").held == 0));
  turn();
  CHECK(at("node1:1").connected);
  CHECK(at("node1:1").epoch > at("node0:1").epoch);
  CHECK(at("node0:1").in_flight + at("node1:1").in_flight + at("node1:1").kills_owed == 0);
  CHECK(c.w.snapshot().reconnects == 0);
  nodes::move(c.w, "k", 1);
  c.w.await(c.w.extend(held, 20s));
  CHECK((at("node0:1").held == 0 && at("node1:1").held == 1));
  c.w.await(c.w.release(held));
  c.w.pass(30s);
  CHECK((c.first.connected() == 0) != (c.second.connected() == 0));
  CHECK(c.w.snapshot().connected);
  CHECK(c.w.noted(event_type::disconnected) == 0);
}

TEST_CASE("cluster: a client that closes leaves what it held, wherever the slot goes", "[unit][machine][cluster]") {
  cluster c;
  c.w.await(c.w.acquire(1, {.leased = false}));
  c.w.await(c.w.acquire(2, {.name = "other", .leased = false}));
  nodes::move(c.w, "k", 1);
  nodes::move(c.w, "other", 1);
  c.w.close(0, 1);
  c.w.pass(3s);
  CHECK_FALSE(c.second.exists("k"));
  CHECK(c.second.exists("other"));
  for (auto const& one : c.w.snapshot().nodes) CHECK(one.held == 0);
}

TEST_CASE("cluster: connections stay if the settings say so", "[unit][machine][cluster]") {
  config given = impatient();
  given.idle_connection_timeout = 0ms;
  cluster c(1, given);
  nodes::move(c.w, "there", 1);
  for (auto const* name : {"k", "there"}) {
    auto& one = c.w.await(c.w.acquire(1, {.name = name}));
    c.w.await(c.w.release(one));
  }
  c.w.pass(60s);
  CHECK(c.first.connected() > 0);
  CHECK(c.second.connected() > 0);
}

TEST_CASE("cluster: a node that says nothing keeps nobody from asking the next one", "[unit][machine][cluster]") {
  cluster c;
  nodes::move(c.w, "there", 1);
  for (auto const* name : {"k", "there"}) c.w.await(c.w.acquire(1, {.name = name}));
  c.w.nobody_answers = true;
  c.w.only_host = "node0";
  for (std::size_t i = 0; i < 8; ++i) {  // which of the two is asked first is left to chance
    auto const before = c.w.noted(event_type::topology_changed);
    nodes::move(c.w, "moves", 1 - i % 2);
    c.w.lose(role::scout, fate::gone);
    c.w.pass(600ms);
    CHECK(c.w.noted(event_type::topology_changed) > before);
  }
  c.w.nobody_answers = false;
}

TEST_CASE("cluster: the watchdog renews where the slot has gone", "[unit][machine][cluster]") {
  cluster c;
  auto& held = c.held_and_half_moved();
  c.w.pass(25s);
  CHECK(c.second.ttl("k") > 15'000);
  nodes::move(c.w, "k", 1);
  c.w.pass(60s);
  CHECK(c.second.ttl("k") > 15'000);
  CHECK(held.losses == 0);
  c.w.await(c.w.release(held));
}

TEST_CASE("cluster: who waits hears of the end where the slot has gone", "[unit][machine][cluster][case-t36]") {
  for (bool const fair : {false, true}) {
    cluster c(2);
    how options{.which = fair ? &detail::fair_kind() : &detail::reentrant_kind()};
    auto& held = c.w.await(c.w.acquire(1, options));
    options.client = 1;
    auto& waits = c.w.acquire(2, options);
    c.w.pass(1s);
    CHECK_FALSE(waits.done());
    auto const tries = [&] { return c.second.ran(fair ? "EVALSHA fair_acquire k " : "EVALSHA acquire k "); };
    REQUIRE(tries() == 0);
    nodes::move(c.w, "k", 1);
    c.w.pass(300ms);
    CHECK(c.second.subscriptions() > 0);
    CHECK(tries() == 1);
    auto const released = c.w.now;
    c.w.release(held);
    c.w.await(waits);
    CHECK(c.w.now == released);
    CHECK(waits.granted());
    c.w.await(c.w.release(waits));
  }
}

TEST_CASE("cluster: who waits at the source hears of a release at the target", "[unit][machine][cluster][case-t18]") {
  for (bool const by_force : {false, true}) {
    cluster c(2);
    auto& held = c.w.await(c.w.acquire(1));
    auto& waits = c.w.acquire(2, {.client = 1});
    c.w.pass(10ms);
    REQUIRE(c.first.subscriptions() == 1);
    nodes::begin_move(c.w, "k", 1);
    nodes::move_keys(c.w, "k", 1);
    auto const before = c.w.now;
    if (by_force)
      c.w.await(c.w.force_unlock());
    else
      c.w.await(c.w.release(held));
    granted(c.w, waits);
    CHECK(c.w.now == before);
    CHECK(c.second.count("k", c.w.field(2, 1)) == 1);
    c.w.pass(1s);
    CHECK(c.first.ran("SPUBLISH") == 1);
  }
}

TEST_CASE("cluster: what was to be told at a node that is given up is forgotten", "[unit][machine][cluster]") {
  cluster c;
  auto& held = c.held_and_half_moved();
  auto& end = c.w.release(held);
  c.w.until([&] { return c.second.ran("ASKING") == 1; });
  c.w.unreachable = "no route";
  c.w.only_host = "node0";
  c.first.restart(true);
  c.w.await(end);
  CHECK(end.released == release_result::released);
  c.w.pass(1s);
  CHECK_FALSE(c.w.machine().quiet());  // who listens there is to be told
  nodes::move(c.w, "k", 1);
  nodes::take_over(c.w, 0, 1, true);
  c.w.pass(10s);
  CHECK(c.w.machine().quiet());
}

TEST_CASE("cluster: a replica takes over, and holds are looked for there first", "[unit][machine][cluster]") {
  for (bool const gone : {false, true}) {
    cluster c;
    auto& held = c.w.acquire(1);
    auto& fixed = c.w.acquire(2, {.name = "other", .lease = 20s});
    c.w.await(held, fixed);
    c.w.pass(500ms);
    c.second.redis.data = c.first.redis.data;
    nodes::take_over(c.w, 0, 1, gone);
    c.w.await(c.w.acquire(3, {.name = "third"}));
    CHECK(c.second.count("third", c.w.field(3)) == 1);
    CHECK(c.second.ran("EVALSHA renew") == 2);
    auto const at = [&](std::string_view start) {
      return std::find_if(c.second.log.begin(), c.second.log.end(),
                          [&](auto const& one) { return one.starts_with(start); });
    };
    CHECK(at("EVALSHA renew") < at("EVALSHA acquire"));
    CHECK(held.losses + fixed.losses == 0);
    CHECK(c.w.noted(event_type::topology_changed) == 2);
  }
}

TEST_CASE("cluster: who lost a grant with its master is told", "[unit][machine][cluster]") {
  cluster c;
  auto& held = c.w.await(c.w.acquire(1));
  c.w.pass(500ms);
  nodes::take_over(c.w, 0, 1, true);  // with nothing
  c.w.pass(1s);
  CHECK(held.losses == 1);
}

TEST_CASE("cluster: a release that the replica has not heard of is repeated there", "[unit][machine][cluster]") {
  bool const asked = GENERATE(true, false);  // else the new master is looked for on its account alone
  cluster c;
  auto& held = c.w.await(c.w.acquire(1));
  c.second.redis.data = c.first.redis.data;
  c.w.await(c.w.release(held));
  c.w.pass(1s);
  task* const other = asked ? &c.w.acquire(2, {.name = "other"}) : nullptr;
  nodes::take_over(c.w, 0, 1, true);
  if (other) c.w.await(*other);
  c.w.pass(1s);
  CHECK_FALSE(c.second.exists("k"));
}

// A thousand clients that wait for a failover would ask fifty masters a quarter of a million times a second.
TEST_CASE("cluster: what ran where a slot is going is looked after when that node is replaced",
          "[unit][machine][cluster]") {
  bool const has_slots = GENERATE(false, true);
  cluster c;
  auto& third = c.w.add_server();
  if (has_slots) nodes::move(c.w, "other", 1);
  auto& held = c.held_and_half_moved();
  auto const copy = c.second.redis.data;
  c.w.await(c.w.release(held));
  CHECK_FALSE(c.second.exists("k"));
  auto& lost = c.w.await(c.w.acquire(2, {.name = "{k}2", .lease = 60s}));
  CHECK(c.second.exists("{k}2"));
  third.redis.data = copy;
  nodes::take_over(c.w, 1, 2, true);
  c.w.pass(6s);
  CHECK_FALSE(third.exists("k"));
  CHECK(lost.losses == 1);
}

TEST_CASE("cluster: a node that is elected again has lost what a new one would have lost", "[unit][machine][cluster]") {
  cluster c;
  auto& held = c.w.await(c.w.acquire(1));
  auto const copy = c.first.redis.data;
  c.w.await(c.w.release(held));
  auto& fixed = c.w.await(c.w.acquire(2, {.name = "other", .lease = 60s}));
  c.w.pass(1s);
  c.first.redis.data = copy;
  nodes::take_over(c.w, 0, 0, false);
  c.w.pass(6s);
  CHECK_FALSE(c.first.exists("k"));
  CHECK(fixed.losses == 1);
  CHECK(c.w.noted(event_type::topology_changed) == 2);
}

TEST_CASE("cluster: a question to a node that is elected again is asked again there", "[unit][machine][cluster]") {
  cluster c;
  nodes::move(c.w, "k", 1);
  auto& held = c.w.await(c.w.acquire(1));
  c.w.pass(30s);  // there is no other connection left
  int const asked = nodes::questions(c.w);
  c.w.until([&] { return nodes::questions(c.w) > asked; });
  c.w.pass(4'500ms);
  c.w.mute(role::shared);
  auto& query = c.w.ask(detail::query::is_locked);
  c.w.pass(10ms);
  nodes::take_over(c.w, 1, 1, false);
  c.w.pass(1s);
  CHECK(c.w.noted(event_type::topology_changed) == 3);
  REQUIRE(query.done());
  CHECK(query.value == 1);
  c.w.await(c.w.release(held));
}

// It ran before the election, which has lost it, and its WAIT is met by what followed.
TEST_CASE("cluster: a renewal that left before an election of which nobody had heard makes no hold longer",
          "[unit][machine][cluster]") {
  bool const moves = GENERATE(false, true);  // its slot goes to another node besides, which is all that is heard of
  cluster c;
  world& w = c.w;
  for (auto* const one : {&c.first, &c.second}) one->redis.replicas = one->redis.synced_replicas = 2;
  w.add_server();
  nodes::move(w, "other", 2);
  nodes::move(w, "more", 2);
  auto& held = granted(w, w.acquire(1));
  auto& kept = granted(w, w.acquire(2, {.name = "{k}2"}));
  granted(w, w.acquire(3, {.name = "other", .lease = 60s}));
  auto const until = held.shown.until();
  auto copy = c.first.redis.data;
  copy.remove("k");
  w.pass(8s);
  w.mute(role::shared);
  w.until([&] { return c.first.ran("EVALSHA renew") > 0; });
  CHECK(held.shown.until() == until);
  c.first.redis.data = copy;
  nodes::take_over(w, 0, 0, false);
  nodes::move(w, moves ? "more" : "other", 0);
  if (moves) nodes::move(w, "k", 1);
  w.acquire(4, {.name = moves ? "more" : "other", .wait = 10ms});  // MOVED: it is noticed
  w.pass(100ms);
  w.mute(role::shared, false);
  w.pass(500ms);
  CHECK(held.losses == 1);
  CHECK(kept.losses == 0);
  CHECK(kept.shown.until() > until + 5s);
  auto& now = moves ? c.second : c.first;
  CHECK(now.ttl("{k}2") > 25'000);
}

// Its epoch is greater for what it has got.
TEST_CASE("cluster: a node that gets a slot goes on with its connections", "[unit][machine][cluster]") {
  bool const by_moved = GENERATE(true, false);
  cluster c;
  auto& held = c.w.await(c.w.acquire(1));
  nodes::move(c.w, "other", 1);
  c.w.await(c.w.acquire(2, {.name = "other"}));
  c.w.pass(6s);
  int const opened = c.w.opened;
  nodes::move(c.w, "k", 1);
  if (by_moved) c.w.await(c.w.acquire(3, {.name = "k", .wait = 10ms}));
  c.w.pass(12s);
  CHECK(c.second.exists("k"));
  CHECK(c.w.opened <= opened + 3);  // of the scout, at most
  CHECK(held.losses == 0);
}

TEST_CASE("cluster: while a node is missed the others are not asked who they are again and again",
          "[unit][machine][cluster]") {
  cluster c;
  nodes::move(c.w, "other", 1);
  c.w.await(c.w.acquire(1));
  c.w.await(c.w.acquire(2, {.name = "other"}));
  c.w.only_host = "node1";
  c.w.unreachable = "Connection refused";
  c.second.restart(true);
  std::size_t const before = c.first.ran("ROLE");
  int const questions = nodes::questions(c.w);
  c.w.pass(5s);
  CHECK(nodes::questions(c.w) - questions > 10);
  CHECK(c.first.ran("ROLE") - before <= 3);
}

// What is left of a master whose slots another master has taken over, with its replica's data.
TEST_CASE("cluster: a master with slots of its own takes over those of another", "[unit][machine][cluster]") {
  cluster c;
  nodes::move(c.w, "other", 1);
  auto& held = c.w.await(c.w.acquire(1));
  c.w.await(c.w.acquire(9, {.name = "other"}));
  auto& lost = c.w.acquire(2, {.name = "lost"});
  auto& released = c.w.acquire(3, {.name = "released"});
  c.w.await(lost, released);
  for (auto const* name : {"k", "released"}) {
    c.second.set(name, c.w.field(name[0] == 'k' ? 1 : 3), 1);
    c.second.expire(name, 30'000);
  }
  c.w.await(c.w.release(released));
  auto& waits = c.w.acquire(5);  // its channel ends: so it is noticed
  c.w.pass(100ms);
  c.w.deafen(role::shared);  // the first one: of what stands in it nothing runs any more, and nothing is believed
  auto& late = c.w.run(c.w.acquire(4, {.name = "late"}));
  CHECK_FALSE(late.done());
  nodes::take_over(c.w, 0, 1, false);
  c.w.pass(300ms);
  CHECK(late.granted());
  CHECK(c.second.count("late", c.w.field(4)) == 1);
  CHECK(held.losses == 0);
  CHECK(lost.losses == 1);
  CHECK_FALSE(c.second.exists("released"));
  c.w.await(c.w.release(held));
  CHECK(waits.granted());
  c.w.await(c.w.release(waits));
  CHECK_FALSE(c.second.exists("k"));
}
