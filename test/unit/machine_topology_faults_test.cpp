// Faults of other topologies than one server, in virtual time. The numbers are those of docs/topology-cases.md.
#include <support/catch.hpp>
#include <support/unit/stories.hpp>
#include <support/unit/topologies.hpp>

#include <algorithm>

using namespace latchkey;
using namespace latchkey::test;
using namespace std::chrono_literals;

namespace {

constexpr char const* unblocked =
    "UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)";

}  // namespace

TEST_CASE("case t10: MOVED without a host means the node that said so", "[unit][machine][cluster][case-t10]") {
  world w({}, 1, world::known::by_nodes);
  auto& other = w.add_server();
  w.resolve_to(w.server);
  w.await(w.acquire(9, {.name = "warm"}));
  int told = 0;
  auto const usual = w.server.elsewhere;
  w.server.elsewhere = [&](stepped_server::words const& command, bool asking) {
    bool const of_k = std::find(command.begin(), command.end(), "k") != command.end();
    return of_k && told++ < 2 ? std::string("MOVED 7629 :1") : usual(command, asking);
  };
  auto const before = w.now;
  auto& one = w.await(w.acquire(1));
  CHECK(one.granted());
  CHECK(w.now == before);
  CHECK(told == 3);
  CHECK(other.log.empty());
}

TEST_CASE("case t26: a master that one of two replicas still follows", "[unit][machine][case-t26]") {
  replicated all(-1), one(1);
  all.w.server.redis.synced_replicas = one.w.server.redis.synced_replicas = 1;
  auto& refused = all.w.await(all.w.once(1));
  CHECK(refused.error == errc::not_synced);
  auto& told = one.w.once(1);  // although the other replica may be promoted
  granted(one.w, told);
}

TEST_CASE("case t40: a new master that loads its data is waited for, and holds are looked for then",
          "[unit][machine][case-t40]") {
  world w({}, 1, world::known::by_sentinel);
  auto& next = w.add_server();
  w.resolve_to(w.server);
  auto& held = w.await(w.acquire(1));
  w.pass(500ms);
  next.redis.data = w.server.redis.data;
  next.refuse("EVAL", "LOADING Redis is loading the dataset in memory", -1);
  test::sentinels::promote(w, next);
  w.run();
  auto& waits = w.acquire(2, {.name = "other", .wait = 20s});
  w.pass(3s);
  CHECK(held.losses == 0);
  CHECK_FALSE(waits.done());
  next.accept_all();
  granted(w, waits);
  auto const ran = [&](std::string_view what) {
    return std::find_if(next.log.begin(), next.log.end(), [&](auto const& line) { return line.starts_with(what); });
  };
  CHECK(ran("EVALSHA renew") < ran("EVALSHA acquire"));
  w.await(w.release(held));
  CHECK_FALSE(next.exists("k"));
}

TEST_CASE("case t41: a release for which there are too few replicas is told, and the lease ends it",
          "[unit][machine][case-t41]") {
  replicated r(0);
  world& w = r.w;
  auto& held = w.await(w.acquire(1, {.lease = 5s}));
  w.server.refuse("EVALSHA release", "NOREPLICAS Not enough good replicas to write.", -1);
  auto& end = w.await(w.release(held));
  CHECK(end.error);
  CHECK(end.text.starts_with("NOREPLICAS"));
  CHECK(w.now <= instant(1h) + 5s + w.settings.timeout + w.settings.retry_delay);
  CHECK(w.server.exists("k"));
  w.pass(5s);
  CHECK_FALSE(w.server.exists("k"));
}

TEST_CASE("case t43: a WAIT that ends because the master is none any more confirms nothing",
          "[unit][machine][case-t43]") {
  for (bool const direct : {false, true}) {
    config given;
    given.retry_attempts = 0;
    replicated r(1, 2, given);
    world& w = r.w;
    auto& warm = w.await(w.acquire(9, {.name = "warm", .direct = true}));
    w.await(w.release(warm));
    w.pass(500ms);
    w.server.refuse("WAIT", unblocked);
    auto& tried = w.await(w.once(1, {.direct = direct}));
    CHECK(tried.error == errc::not_synced);
    w.run();
    CHECK_FALSE(w.server.exists("k"));
    // Who has time goes on: that passes.
    w.server.refuse("WAIT", unblocked);
    auto& waits = w.await(w.acquire(1, {.direct = direct}));
    CHECK(waits.granted());
  }
}

TEST_CASE("case t56: nodes that are added and removed leave nothing behind", "[unit][machine][cluster][case-t56]") {
  world w({}, 1, world::known::by_nodes);
  w.resolve_to(w.server);
  auto const visit = [&](std::uint64_t i) {
    w.add_server();
    w.resolve_to(w.server);
    nodes::move(w, "k", i);
    auto& held = w.await(w.acquire(i));
    w.await(w.release(held));
    nodes::move(w, "k", 0);
    nodes::leave(w, i);
    w.pass(30s);
    auto& back = w.await(w.acquire(i));
    w.await(w.release(back));
  };
  for (std::uint64_t i = 1; i <= 3; ++i) visit(i);
  auto const few = w.snapshot().nodes.size();
  for (std::uint64_t i = 4; i <= 20; ++i) visit(i);
  CHECK(w.snapshot().nodes.size() <= few);
  int const opened = w.opened;
  w.pass(60s);
  CHECK(w.opened == opened);
}

TEST_CASE("case t57: a client asks for the topology ten times a second at most, whatever it hears",
          "[unit][machine][cluster][case-t57]") {
  world w({}, 1, world::known::by_nodes);
  w.add_server();
  w.resolve_to(w.server);
  w.await(w.acquire(9, {.name = "warm"}));
  w.pass(1s);
  int const before = nodes::questions(w);
  for (int i = 0; i < 500; ++i) {
    nodes::move(w, "k", i % 2 == 0 ? 1 : 0);
    auto& one = w.await(w.acquire(1));
    w.await(w.release(one));
    w.pass(20ms);
  }
  CHECK(w.snapshot().redirected >= 400);
  CHECK(nodes::questions(w) - before <= 101);
}
