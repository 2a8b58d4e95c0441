// Grants that replicas are to confirm (WAIT), in virtual time: docs/topologies.md.
#include <support/catch.hpp>
#include <support/unit/stories.hpp>
#include <support/unit/topologies.hpp>
#include <support/unit/turns.hpp>

using namespace latchkey;
using namespace latchkey::test;
using namespace std::chrono_literals;

TEST_CASE("replicas: a grant is told when as many have it as are asked for", "[unit][machine]") {
  for (bool const direct : {false, true}) {
    auto const [needed, replicas, asked] = GENERATE(table<int, std::size_t, char const*>({
        {0, 2, "1 1000"},
        {1, 2, "1 1000"},
        {2, 2, "2 1000"},
        {-1, 2, "2 1000"},
    }));
    INFO(needed);
    replicated r(needed, replicas);
    auto& warm = r.w.acquire(9, {.name = "warm", .direct = true});
    r.w.await(warm);
    r.w.pass(500ms);
    auto const before = r.waits(asked);
    auto& held = r.w.acquire(1, {.direct = direct});
    r.w.await(held);
    CHECK(held.granted());
    CHECK(r.waits(asked) == before + 1);
    // Who is told that it is busy, and who releases, waits for nobody.
    auto& busy = r.w.once(2, {.direct = direct});
    r.w.await(busy);
    CHECK(busy.busy());
    r.w.await(r.w.release(held, direct));
    CHECK(r.waits(asked) == before + 1);
    CHECK(r.w.noted(event_type::unsynced) == 0);
  }
}

TEST_CASE("replicas: of a master without any nobody is asked, which is told once", "[unit][machine][case-t24]") {
  auto const [needed, asked] = GENERATE(table<int, char const*>({{0, "1 1000"}, {-1, "2 1000"}}));
  INFO(needed);
  replicated r(needed, 0);
  r.w.named_replicas = 0;
  for (std::uint64_t owner = 1; owner < 4; ++owner) r.w.await(r.w.acquire(owner, {.name = std::to_string(owner)}));
  CHECK(r.waits("") == 0);
  CHECK(r.w.noted(event_type::unsynced) == 1);
  // They are counted again.
  r.w.named_replicas = 2;
  r.w.server.redis.replicas = r.w.server.redis.synced_replicas = 2;
  r.w.pass(2500ms);
  r.w.await(r.w.acquire(9, {.name = "9"}));
  CHECK(r.waits(asked) == 1);
}

TEST_CASE("replicas: a grant that they do not confirm is told to nobody and given back", "[unit][machine][case-t23]") {
  for (bool const direct : {false, true}) {
    INFO(direct);
    replicated r(1);
    auto& warm = r.w.acquire(9, {.name = "warm", .direct = true});
    r.w.await(warm);
    r.w.await(r.w.release(warm));
    r.w.pass(500ms);
    r.w.server.redis.synced_replicas = 0;
    auto& tried = r.w.once(1, {.direct = direct});
    r.w.await(tried);
    CHECK(tried.error == errc::not_synced);
    CHECK(tried.text.find("replicas") != std::string::npos);
    r.w.run();
    CHECK_FALSE(r.w.server.exists("k"));
    CHECK(r.w.server.ran("EVALSHA acquire") == 6);  // the first, and as many as retry_attempts allow
    // In a wait it goes on until they do.
    auto& waits = r.w.acquire(1, {.wait = 5s, .direct = direct});
    for (int i = 0; i < 200; ++i) r.w.step();
    CHECK_FALSE(waits.done());
    r.w.server.redis.synced_replicas = 1;
    r.w.await(waits);
    CHECK(waits.granted());
    CHECK(waits.losses == 0);
  }
}

// Without so many it is not as with 0, where it is granted.
TEST_CASE("replicas: where so many are wanted and fewer follow nothing is granted", "[unit][machine][case-t23]") {
  for (int const needed : {1, 2}) {
    replicated r(needed, static_cast<std::size_t>(needed) - 1);
    auto& tried = r.w.once(1);
    r.w.await(tried);
    CHECK(tried.error == errc::not_synced);
    r.w.run();
    CHECK_FALSE(r.w.server.exists("k"));
    CHECK(r.w.noted(event_type::unsynced) == 0);
  }
}

TEST_CASE("replicas: all are those that the sentinels name, and not those that follow", "[unit][machine][case-t23]") {
  replicated r(-1);
  r.w.await(r.w.acquire(9, {.name = "warm"}));
  r.w.server.redis.replicas = r.w.server.redis.synced_replicas = 1;  // one of the two has gone
  r.w.pass(5s);
  auto& tried = r.w.once(1);
  r.w.await(tried);
  CHECK(tried.error == errc::not_synced);
}

TEST_CASE("replicas: a server that refuses WAIT is not asked again and again", "[unit][machine]") {
  for (bool const direct : {false, true}) {
    replicated r(1);
    r.w.server.refuse("WAIT", "NOPERM this user has no permissions to run the 'wait' command", -1);
    auto& call = r.w.acquire(1, {.direct = direct});
    r.w.await(call);
    CHECK(call.error == errc::not_synced);
    CHECK(call.text.starts_with("NOPERM"));
    r.w.run();
    CHECK(r.w.server.ran("EVALSHA acquire") == 1);
    CHECK_FALSE(r.w.server.exists("k"));
  }
}

TEST_CASE("replicas: a renewal that they do not confirm is not believed", "[unit][machine][case-t27]") {
  replicated r(1);
  auto& held = r.w.acquire(1);
  r.w.await(held);
  auto const until = held.shown.until();
  r.w.server.redis.synced_replicas = 0;
  r.w.pass(15s);
  CHECK(r.w.server.ran("EVALSHA renew") > 1);
  CHECK(held.shown.until() == until);
  CHECK(r.w.noted(event_type::at_risk) == 1);
  r.w.server.redis.synced_replicas = 2;
  r.w.pass(3s);
  CHECK(held.shown.until() > until);
  r.w.server.redis.synced_replicas = 0;
  r.w.pass(40s);
  CHECK(held.losses == 1);
}

// Found by the walks, seed 2092026 behind sentinels: the next master forgot a hold that began behind such a question.
TEST_CASE("replicas: a turn that the server confirms makes no hold longer, since they are not asked",
          "[unit][machine]") {
  config given = with_turns(impatient());
  given.local_handoff.max_time = 10s;
  replicated r(1, 2, given);
  world& w = r.w;
  auto& a = granted(w, w.acquire(1));
  auto const until = a.shown.until();
  auto& b = w.run(w.acquire(2));
  w.pass(2s);
  w.drop(a);
  REQUIRE(b.granted());
  auto const before = asked(w);
  w.pass(10ms);
  REQUIRE(asked(w) == before + 1);
  auto& again = granted(w, w.acquire(2));
  CHECK(asked(w) == before + 1);
  CHECK(again.shown.until() <= until);
  w.pass(11s);  // a renewal, of which they are asked
  CHECK(again.shown.until() > until);
  w.await(w.release(again));
  w.await(w.release(b));
}

TEST_CASE("replicas: an extension that they do not confirm is an error", "[unit][machine]") {
  replicated r(1);
  auto& held = r.w.acquire(1);
  r.w.await(held);
  r.w.server.redis.synced_replicas = 0;
  auto& longer = r.w.extend(held, 60s);
  r.w.await(longer);
  CHECK(longer.error == errc::not_synced);
  CHECK(held.shown.until() <= r.w.now + 30s);
}

TEST_CASE("replicas: a connection that is lost before they have confirmed leaves the grant in doubt",
          "[unit][machine]") {
  replicated r(1);
  r.w.await(r.w.acquire(9, {.name = "warm"}));
  r.w.pass(500ms);
  auto& held = r.w.acquire(1);
  r.w.until([&] { return r.w.server.count("k", r.w.field(1)) == 1; });
  r.w.step();
  CHECK_FALSE(held.done());
  r.w.lose(role::shared, fate::late);
  r.w.await(held);
  CHECK(held.granted());
  CHECK(r.w.server.count("k", r.w.field(1)) == 1);
  r.w.await(r.w.release(held));
  CHECK_FALSE(r.w.server.exists("k"));
}
