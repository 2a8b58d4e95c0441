#include <machine/sentinel_scout.hpp>
#include <support/catch.hpp>
#include <support/unit/stories.hpp>
#include <support/unit/topologies.hpp>
#include <support/unit/transfers.hpp>
#include <wire/kinds.hpp>

#include <algorithm>
#include <array>

using namespace latchkey;
using namespace latchkey::test;
using namespace std::chrono_literals;

// A client whose master changes, in virtual time: docs/topologies.md.

namespace {

// The next master has not heard of a release by `first`, after which owner 5 has adopted what another client took.
struct adopted_after_a_release : failover {
  explicit adopted_after_a_release(std::uint64_t first, config const& given = impatient()) : failover(2, given) {
    auto& released = w.await(w.acquire(first, {.lease = 60s}));
    copy();
    w.await(w.release(released));
    auto& theirs = w.await(w.acquire(1, {.lease = 60s, .client = 1}));
    transfers::detach(w, theirs);
    adopted = &transfers::adopt(w, 5, theirs);
    if (!adopted->yes) w.fail("it was not adopted");
  }

  task* adopted = nullptr;
};

}  // namespace

TEST_CASE("fleet: a client asks a sentinel for its server, and locks there", "[unit][machine]") {
  failover f;
  auto& held = f.w.await(f.w.acquire(1));
  CHECK(f.w.server.count("k", f.w.field(1)) == 1);
  CHECK(f.w.noted(event_type::topology_changed) == 1);
  f.w.await(f.w.release(held));
  CHECK_FALSE(f.w.server.exists("k"));
  CHECK(f.next.log.empty());
}

TEST_CASE("fleet: a sentinel that knows no other is told, once", "[unit][machine]") {
  for (bool const checks : {true, false}) {
    config given = impatient();
    given.check_sentinels_list = checks;
    world w(given, 1, world::known::by_sentinel);
    w.await(w.acquire(1));
    w.pass(1min);  // with many questions
    auto const told = std::count_if(w.notes.begin(), w.notes.end(), [](auto const& one) {
      return one.type == event_type::warning && one.text == "the sentinel sentinel:26379 knows no other";
    });
    CHECK(told == checks);
  }
}

TEST_CASE("fleet: after a failover holds are looked for on the new master before anything else is asked",
          "[unit][machine]") {
  failover f;
  auto& held = f.w.acquire(1);
  auto& fixed = f.w.acquire(2, {.name = "other", .lease = 20s});
  f.w.await(held, fixed);
  f.w.pass(500ms);
  f.copy();
  f.promote();
  f.w.until([&] { return f.next.log.size() > 0; });  // it has come there
  f.w.await(f.w.acquire(3, {.name = "third"}));
  CHECK(f.next.ran("EVALSHA renew") == 1);
  CHECK(f.next.count("third", f.w.field(3)) == 1);
  CHECK(held.losses + fixed.losses == 0);
  auto const renewed = std::find_if(f.next.log.begin(), f.next.log.end(),
                                    [](auto const& line) { return line.starts_with("EVALSHA renew"); });
  auto const asked = std::find_if(f.next.log.begin(), f.next.log.end(),
                                  [](auto const& line) { return line.starts_with("EVALSHA acquire"); });
  CHECK(renewed < asked);
  CHECK(f.next.ttl("other") <= 20'000);
}

TEST_CASE("fleet: who lost a grant with the old master is told as soon as the new one answers", "[unit][machine]") {
  for (milliseconds const lease : {0ms, 20'000ms}) {
    failover f;
    auto& held = f.w.await(f.w.acquire(1, {.lease = lease}));
    f.w.pass(500ms);
    f.promote();  // with nothing
    f.w.run();
    CHECK(held.losses == 1);
    CHECK(held.why_lost == errc::lease_lost);
  }
}

TEST_CASE("fleet: a failover that was not announced is noticed by asking", "[unit][machine]") {
  failover f;
  auto& held = f.w.await(f.w.acquire(1));
  f.copy();
  f.promote(false);
  f.w.pass(1'100ms);
  CHECK(f.next.ran("EVALSHA renew") == 1);
  CHECK(held.losses == 0);
}

TEST_CASE("fleet: a release that the new master has not heard of is repeated there", "[unit][machine]") {
  failover f;
  auto& held = f.w.await(f.w.acquire(1));
  f.copy();
  f.w.await(f.w.release(held));
  f.w.pass(9s);
  f.promote();
  f.w.run();
  CHECK_FALSE(f.next.exists("k"));
  f.w.run();
  CHECK(f.next.ran("EVALSHA release") == 1);
}

// Renewals of the one side would keep the other, too.
TEST_CASE("fleet: a release is repeated while its owner asks for the other side", "[unit][machine]") {
  how const reads{.which = &detail::read_write_kind(), .mode = 0}, writes{.which = reads.which, .mode = 1};
  failover f;
  auto& held = f.w.await(f.w.acquire(1, writes));
  f.copy();
  f.w.await(f.w.release(held));
  f.w.mute(role::shared);
  auto& reader = f.w.run(f.w.acquire(1, reads));
  f.promote();
  f.w.await(reader);
  f.w.run();
  CHECK(f.next.count("k", f.w.field(1)) == 1);
  CHECK(f.next.count("k", f.w.field(1) + ":write") == 0);
  f.w.await(f.w.release(reader));
  CHECK_FALSE(f.next.exists("k"));
}

TEST_CASE("fleet: a release is repeated while its owner leaves the line", "[unit][machine]") {
  how const ours{.which = &detail::fair_kind()}, theirs{.client = 1, .which = ours.which};
  failover f(2);
  auto& held = f.w.await(f.w.acquire(1, ours));
  f.copy();
  f.w.await(f.w.release(held));
  f.w.await(f.w.acquire(2, theirs));
  auto& waits = f.w.acquire(1, ours);
  f.w.pass(10ms);
  f.w.mute(role::shared);
  f.w.cancel(waits).run();
  f.promote();
  f.w.pass(1s);
  CHECK(f.next.count("k", f.w.field(1)) == 0);
}

TEST_CASE("fleet: what was released long ago is not released again", "[unit][machine]") {
  failover f;
  f.replicate(2);
  auto& held = f.w.await(f.w.acquire(1));
  f.w.await(f.w.release(held));
  f.w.await(f.w.acquire(2, {.name = "other"}));
  f.copy();
  f.w.pass(13s);
  f.promote();
  f.w.run();
  CHECK(f.next.ran("EVALSHA release") == 0);
}

TEST_CASE("fleet: masters that change again and again do not make a release younger", "[unit][machine]") {
  failover f;
  f.replicate(2);
  auto& held = f.w.await(f.w.acquire(1));
  f.w.await(f.w.release(held));
  f.w.await(f.w.acquire(2, {.name = "other"}));
  std::array const both{&f.next, &f.w.server};
  for (std::size_t i = 0; i < 8; ++i) {
    auto& next = *both[i % 2];
    next.redis.data = both[(i + 1) % 2]->redis.data;
    std::size_t const before = next.ran("EVALSHA release");
    test::sentinels::promote(f.w, next);
    f.w.pass(4s);
    INFO("change " << i);
    CHECK(next.ran("EVALSHA release") - before == (i < 3 ? 1u : 0u));
  }
}

TEST_CASE("fleet: what an old master answers later is believed by nobody", "[unit][machine][case-t25]") {
  failover f;
  f.w.await(f.w.acquire(9, {.name = "warm"}));
  f.w.mute(role::shared);
  auto& held = f.w.run(f.w.acquire(1));
  CHECK(f.w.server.count("k", f.w.field(1)) == 1);  // granted there, and nobody knows
  auto const before = f.w.serial(role::shared);
  f.promote();
  f.w.until([&] { return f.next.ran("EVALSHA acquire") == 1; });
  f.w.hear(before, "*1\r\n*1\r\n:1\r\n");
  f.w.hear(before, "*1\r\n*1\r\n:1\r\n");
  CHECK(f.w.noted(event_type::deposed_answer) == 1);
  f.w.await(held);
  CHECK(f.next.count("k", f.w.field(1)) == 1);
  CHECK(held.losses == 0);
}

TEST_CASE("routes: of two claims the one with the greater epoch is believed", "[unit][machine]") {
  detail::routes table;
  using verdict = detail::routes::verdict;
  CHECK(table.empty());
  CHECK(table.claim({"a", 1}, 5, false) == verdict::changes);
  CHECK(table.claim({"a", 1}, 6, true) == verdict::again);
  CHECK(table.claim({"a", 1}, 6, true) == verdict::known);
  CHECK(table.claim({"b", 1}, 5, true) == verdict::stale);
  CHECK(table.claim({"b", 1}, 6, true) == verdict::known);  // another name of it
  CHECK(table.now().at == detail::node_address{"a", 1});
  CHECK(table.claim({"b", 1}, 6, false) == verdict::changes);
  CHECK(table.claim({"a", 1}, 7, true) == verdict::changes);
  CHECK(table.now().epoch == 7);
  CHECK_FALSE(table.empty());
}

// Nobody has heard of the other one, which was master between.
TEST_CASE("fleet: a server that is elected again has lost what a new one would have lost", "[unit][machine]") {
  failover f;
  auto& held = f.w.await(f.w.acquire(1));
  f.copy();
  f.w.await(f.w.release(held));
  auto& fixed = f.w.await(f.w.acquire(2, {.name = "other", .lease = 60s}));
  auto const before = f.w.serial(role::shared);
  f.w.server.redis.data = f.next.redis.data;
  f.promote(false);
  test::sentinels::promote(f.w, f.w.server, false);
  f.w.pass(1'100ms);
  CHECK_FALSE(f.w.server.exists("k"));
  CHECK(fixed.losses == 1);
  CHECK(f.w.serial(role::shared) != before);  // what a WAIT says there is of the time before
  CHECK(f.w.noted(event_type::topology_changed) == 2);
}

// Nobody told it so, but it may still run; and it does, before the client hears of the second change.
TEST_CASE("fleet: what a master has not answered is released where it may have run", "[unit][machine]") {
  failover f;
  world& w = f.w;
  w.late_bytes = false;
  w.await(w.acquire(9, {.name = "other", .lease = 60s}));
  f.copy();
  f.next.stranger_takes("k", "stranger:1", 60'000);
  w.deafen(role::shared);
  auto& asks = w.run(w.acquire(1, {.wait = 2s, .lease = 60s}));
  w.unreachable = "no route";  // and so it is not told to forget it
  w.only_host = "node0";
  w.lose(role::shared, fate::late);
  f.promote();
  w.await(asks);
  CHECK_FALSE(asks.granted());
  CHECK(f.next.stranger_releases("k", "stranger:1"));
  w.server.redis.data = f.next.redis.data;
  test::sentinels::promote(w, w.server, false);
  CHECK(w.server.run_left_behind() > 0);
  CHECK(w.server.exists("k"));
  w.unreachable.clear();
  w.pass(2'500ms);
  CHECK_FALSE(w.server.exists("k"));
  CHECK(w.server.exists("other"));
}

TEST_CASE("fleet: a re-entry that was not answered makes no release of what is held", "[unit][machine]") {
  config given = impatient();
  given.local_turns = false;
  failover f(1, given);
  world& w = f.w;
  auto& held = w.await(w.acquire(1, {.lease = 60s}));
  w.mute(role::shared);
  auto& again = w.run(w.acquire(1, {.lease = 60s}));
  w.cancel(again).run();
  f.copy();
  f.promote();
  w.pass(1s);
  CHECK(f.next.count("k", w.field(1)) == 1);
  transfers::detach(w, held);
  w.await(w.acquire(2, {.name = "other"}));
  w.server.redis.data = f.next.redis.data;
  test::sentinels::promote(w, w.server);
  w.pass(1s);
  CHECK(w.server.exists("k"));
}

TEST_CASE("fleet: what is taken again under the field of another client makes no release forgotten",
          "[unit][machine]") {
  config given = impatient();
  given.local_turns = false;
  adopted_after_a_release f(1, given);
  auto& again = granted(f.w, f.w.acquire(5, {.lease = 60s}));
  f.promote();
  f.w.pass(1s);
  CHECK(again.losses == 1);
  CHECK_FALSE(f.next.exists("k"));
}

TEST_CASE("fleet: a release is repeated when its owner has left the field of another one", "[unit][machine]") {
  config const given = with_turns(impatient());
  failover f(1, given);
  auto& first = f.w.await(f.w.acquire(1));
  f.copy();
  f.w.await(f.w.release(first));
  auto& second = f.w.await(f.w.acquire(2));
  auto& turn = f.w.run(f.w.acquire(1));
  f.w.await(f.w.release(second));
  REQUIRE(turn.granted());
  CHECK(f.w.server.count("k", f.w.field(2)) == 1);
  f.promote();
  f.w.pass(1s);
  CHECK(turn.losses == 1);
  CHECK_FALSE(f.next.exists("k"));
}

// Others of the client would wait for what is left of it.
TEST_CASE("fleet: a release is repeated while its owner waits for another kind of the lock", "[unit][machine]") {
  failover f;
  auto& held = f.w.await(f.w.acquire(1, {.lease = 60s}));
  f.copy();
  f.w.await(f.w.release(held));
  f.w.server.stranger_takes("k", "stranger:1", 60'000);
  auto& first = f.w.acquire(2, {.which = &detail::fenced_kind()});
  auto& waits = f.w.run(f.w.acquire(1, {.wait = 20s, .which = &detail::fenced_kind()}));
  f.promote();
  f.w.pass(1s);
  CHECK(first.granted());
  CHECK(f.next.count("k", f.w.field(2)) == 1);
  f.w.await(waits);
  CHECK_FALSE(waits.granted());
}

TEST_CASE("fleet: a release is repeated when its owner detaches what it has adopted", "[unit][machine]") {
  adopted_after_a_release f(5);
  world& w = f.w;
  auto const before = w.noted(event_type::topology_changed);
  f.promote();
  w.until([&] { return w.noted(event_type::topology_changed) > before; });
  CHECK(f.adopted->losses == 0);
  CHECK(transfers::detach(w, *f.adopted).owner == w.field(1, 1));
  w.pass(1s);
  CHECK_FALSE(f.next.exists("k"));
}

TEST_CASE("fleet: what is released again is not given up while the new master has no replica", "[unit][machine]") {
  failover f;
  auto& held = f.w.await(f.w.acquire(1));
  f.copy();
  f.w.await(f.w.release(held));
  f.next.refuse("EVALSHA release", "NOREPLICAS Not enough good replicas to write.", 3);
  f.promote();
  f.w.pass(15s);
  CHECK_FALSE(f.next.exists("k"));  // long before its lease ends
}

TEST_CASE("fleet: what the owner has taken again is not released", "[unit][machine]") {
  for (bool const as_another_kind : {false, true}) {
    failover f;
    auto& held = f.w.await(f.w.acquire(1));
    f.w.await(f.w.release(held));
    auto& again =
        f.w.await(f.w.acquire(1, {.lease = 60s, .which = as_another_kind ? &detail::fenced_kind() : nullptr}));
    if (!as_another_kind) transfers::detach(f.w, again);
    f.w.await(f.w.acquire(2, {.name = "other"}));
    f.copy();
    f.promote();
    f.w.pass(1s);
    CHECK(f.next.ran("EVALSHA release") == 0);
    CHECK(f.next.exists("k"));
  }
}

// The master changes before every step of a call, with all that the old one had done by then, and nobody hears of the
// old one any more, which goes on to run what reaches it. Nothing is ever held twice or lost, and nothing is left.
TEST_CASE("fleet: the master changes at step k of every call", "[unit][machine][case-t44]") {
  for (bool const direct : {false, true})
    for (bool const announced : {true, false})
      for (int k = 0, most = 1; k < most; ++k) {
        failover f;
        INFO("direct " << direct << ", announced " << announced << ", step " << k);
        auto& warm = f.w.await(f.w.acquire(7, {.name = "warm", .direct = true}));
        f.w.await(f.w.release(warm, true));
        f.w.pass(1'500ms);  // it may be asked at once
        int const begin = f.w.steps();
        f.w.before_step = [&](world& w) {
          if (w.steps() != begin + k) return;
          f.copy();
          f.promote(announced);
          w.mute(role::shared);
          w.mute(role::direct);
          w.mute(role::messages);
        };
        auto& first = f.w.await(f.w.acquire(1, {.direct = direct}));
        auto& second = f.w.run(f.w.acquire(2, {.direct = direct}));
        auto& end = f.w.await(f.w.release(first, direct));
        CHECK(end.released == release_result::released);
        granted(f.w, second);
        auto& again = f.w.run(f.w.acquire(1, {.lease = 20s}));
        CHECK_FALSE(again.done());
        auto& last = f.w.await(f.w.release(second, direct));
        CHECK(last.released == release_result::released);
        f.w.await(again);
        f.w.drop(again);
        f.w.pass(3s);
        CHECK(first.losses + second.losses + again.losses == 0);
        most = f.w.steps() - begin;
        CHECK_FALSE(f.next.exists("k"));
      }
}

TEST_CASE("fleet: an extension of what the new master has not is told so at once", "[unit][machine]") {
  config given{.check_lock_synced_replicas = false};
  given.local_turns = false;
  world w(given, 1, world::known::by_sentinel);
  stepped_server& next = w.add_server();
  w.resolve_to(w.server);
  w.late_bytes = false;
  w.faulty = true;
  w.watch_holds = false;
  task& held = granted(w, w.acquire(1, {.lease = 20s}));
  w.deafen(role::shared);
  task& longer = w.run(w.extend(held, 60s));
  task& longest = w.run(w.extend(held, 90s));
  w.nobody_answers = true;  // CLIENT KILL at the old one
  w.only_host = "node0";
  test::sentinels::promote(w, next);
  w.pass(500ms);
  CHECK(held.losses == 1);
  for (task const* one : {&longer, &longest}) {
    CHECK(one->done());
    CHECK_FALSE(one->yes);
    CHECK_FALSE(one->error);
  }
}
