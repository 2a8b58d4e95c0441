// Why a server is not to be had is told of that server, and as long as it is known to be so.
#include <support/catch.hpp>
#include <support/unit/stories.hpp>
#include <support/unit/topologies.hpp>

using namespace latchkey;
using namespace latchkey::test;
using namespace std::chrono_literals;

TEST_CASE("hindrance: what one node has refused is not told of another", "[unit][machine][cluster]") {
  cluster c;
  world& w = c.w;
  nodes::move(w, "other", 1);
  granted(w, w.acquire(1, {.name = "k", .lease = 60s}));
  c.second.refuse("ROLE", "NOAUTH Authentication required.", -1);
  w.await(w.acquire(2, {.name = "other", .wait = 500ms}));
  c.second.refuse("ROLE", "", 0);
  w.pass(600s);
  w.only_host = "node0";
  w.nobody_answers = true;
  w.lose(role::shared, fate::gone);
  CHECK(w.await(w.acquire(3, {.name = "k2{k}", .wait = 100ms})).error == errc::connect_failed);
}

TEST_CASE("hindrance: what the master before has refused is not told of the next, which does not answer yet",
          "[unit][machine][sentinel]") {
  failover f;
  world& w = f.w;
  granted(w, w.acquire(1, {.name = "k"}));
  w.server.refuse("ROLE", "NOAUTH Authentication required.", -1);
  w.lose(role::shared, fate::gone);
  w.pass(2s);
  CHECK(w.await(w.acquire(2, {.name = "z", .wait = 100ms})).error == errc::auth_failed);
  f.copy();
  w.only_host = "node1";
  w.nobody_answers = true;
  f.promote();
  w.pass(100ms);
  CHECK(w.await(w.acquire(3, {.name = "x", .wait = 100ms})).error == errc::connect_failed);
  CHECK(w.await(w.connect(100ms)).error != errc::auth_failed);
}

TEST_CASE("hindrance: after hurry() a call waits for another answer, and the last refusal is not its end") {
  world w({.username = "", .password = "secret"});
  w.server.redis.password = "secret";
  granted(w, w.acquire(1));
  w.server.redis.password = "another";
  w.lose(role::shared, fate::gone);
  w.pass(12s);
  w.server.redis.password = "secret";
  w.nobody_answers = true;
  w.tell("hurry", [](auto& machine, auto now, auto& out) { machine.hurry(now, out); });
  CHECK(w.await(w.acquire(2, {.name = "other", .wait = 500ms})).error == errc::connect_failed);
}

TEST_CASE("hindrance: what one node turns away is not told of another", "[unit][machine][cluster]") {
  cluster c;
  world& w = c.w;
  nodes::move(w, "other", 1);
  for (auto const* name : {"k", "other"}) w.await(w.release(granted(w, w.acquire(1, {.name = name}))));
  c.first.refuse("EVALSHA", "LOADING Redis is loading the dataset in memory", -1);
  CHECK_THAT(w.await(w.acquire(2, {.wait = 200ms})).text, Catch::Contains("LOADING"));
  w.only_host = "node1";
  w.nobody_answers = true;
  c.second.restart(true);
  w.pass(3s);
  auto const& waits = w.await(w.acquire(3, {.name = "other", .wait = 50ms}));
  CHECK_THAT(waits.text, Catch::Contains("node1"));
  CHECK_THAT(waits.text, !Catch::Contains("LOADING"));
}

TEST_CASE("hindrance: what the master before turned away is not told of the next", "[unit][machine][sentinel]") {
  failover f;
  world& w = f.w;
  CHECK(w.await(w.connect(1s)).yes);
  w.server.refuse("EVALSHA", "LOADING Redis is loading the dataset in memory", -1);
  CHECK_THAT(w.await(w.acquire(2, {.wait = 200ms})).text, Catch::Contains("LOADING"));
  f.copy();
  f.promote();
  w.pass(1s);
  auto& waits = w.acquire(3, {.name = "z", .wait = 100ms});
  w.until([&] { return w.connected(role::shared); });
  w.deafen(role::shared);
  CHECK_THAT(w.await(waits).text, Catch::Contains("node1"));
  CHECK_THAT(waits.text, !Catch::Contains("LOADING"));
}

TEST_CASE("hindrance: a server that answers no more is named after its connection was given up, too",
          "[unit][machine][cluster]") {
  cluster c;
  world& w = c.w;
  granted(w, w.acquire(1));
  bool const connects = GENERATE(false, true);
  w.deafen(role::shared);
  auto& waits = connects ? w.connect(3'500ms) : w.acquire(2, {.wait = 3'500ms});
  w.until([&] { return !w.connected(role::shared); });
  w.until([&] { return w.connected(role::shared); });
  w.deafen(role::shared);
  CHECK_THAT(w.await(waits).text, Catch::Contains("node0"));
}

TEST_CASE("hindrance: whoever connects to a replica hears so, whenever its wait ends", "[unit][machine]") {
  world w(impatient());
  w.server.redis.read_only = true;
  for (milliseconds const wait : {20ms, 700ms, 50ms, 1'100ms, 300ms, 20ms})
    CHECK(w.await(w.connect(wait)).error == errc::read_only);
}

TEST_CASE("hindrance: whoever connects hears of a server that has become a replica meanwhile", "[unit][machine]") {
  world w(impatient());
  CHECK(w.await(w.connect(1s)).yes);
  w.pass(1s);
  CHECK(w.await(w.connect(1s)).yes);
  w.server.redis.read_only = true;
  CHECK(w.await(w.connect(1s)).error == errc::read_only);
}
