#include <support/catch.hpp>
#include <support/unit/stories.hpp>
#include <support/unit/sweep.hpp>
#include <wire/commands.hpp>
#include <wire/kinds.hpp>

namespace rule_answers {

using namespace latchkey;
using namespace latchkey::test;
using namespace std::chrono_literals;

// What an answer proves, and for whom; calls whose caller has gone.

TEST_CASE("rule: a busy answer is none for a one-shot that came after its try was sent") {
  world w;
  w.server.stranger_takes("k", "stranger:1", 60'000);
  warm_up(w);
  w.mute(role::shared);
  task& a = w.once(1);
  task& with_it = w.run(w.once(2));
  w.server.stranger_releases("k", "stranger:1");
  task& c = w.once(3);
  w.mute(role::shared, false).run();
  CHECK(a.busy());
  CHECK(with_it.busy());
  CHECK(c.granted());
  w.finish();
}

TEST_CASE("rule: a busy answer while a dropped lease is being released leaves later one-shots parked") {
  world w;
  task& holder = granted(w, w.acquire(9));
  w.mute(role::shared);
  task& a = w.run(w.once(1));
  w.drop(holder);
  task& c = w.run(w.once(3));
  w.mute(role::shared, false).run();
  CHECK(a.busy());
  CHECK(c.granted());
  w.finish();
}

TEST_CASE("rule: an abandoned first grant proves that other holds are lost, too") {
  world w;
  w.watch_holds = false;
  task& a = granted(w, w.acquire(1));
  task& listener = w.run(w.acquire(4));
  w.cancel(listener).run();  // its subscription lingers
  w.server.redis.data.clear();
  w.mute(role::shared);
  task& b = w.run(w.once(2, {.direct = true}));
  w.cancel(b);
  w.mute(role::shared, false).run();
  CHECK(a.losses == 1);
  task& c = w.run(w.acquire(3));
  CHECK(c.granted());  // and does not sleep behind a belief that is wrong
  w.drop(a);
  w.finish();
}

TEST_CASE("rule: who drops a lease and comes back at once queues behind who waited") {
  world w;
  task& a = granted(w, w.acquire(1));
  task& b = w.run(w.acquire(2));
  w.drop(a);
  task& again = w.run(w.acquire(1));
  CHECK(b.granted());
  CHECK_FALSE(again.done());
  w.drop(b).run();
  CHECK(again.granted());
  w.finish();
}

TEST_CASE("rule: an abandoned try that was not run does not make the lock busy for the next one") {
  for (char const* refusal :
       {"NOSCRIPT No matching script. Please use EVAL.", "LOADING Redis is loading the dataset in memory"}) {
    for (bool const before_answer : {true, false}) {
      world w;
      warm_up(w);
      w.server.refuse("EVALSHA acquire", refusal);
      w.mute(role::shared);
      task& a = w.run(w.once(1));
      w.cancel(a);
      task* b = before_answer ? &w.once(2) : nullptr;
      w.mute(role::shared, false);
      w.until([&] { return w.server.ran("EVALSHA acquire") == 2 && w.step(); });
      if (!b) b = &w.once(2);
      w.await(*b);
      CHECK(b->granted());
      w.finish();
    }
  }
}

TEST_CASE("rule: an abandoned grantee of a hand-off that was not run leaves the release as it was") {
  for (char const* refusal :
       {"NOSCRIPT No matching script. Please use EVAL.", "LOADING Redis is loading the dataset in memory"}) {
    world w;
    task& a = granted(w, w.acquire(1));
    task& c = w.run(w.acquire(3));
    w.server.refuse("EVALSHA hand_off", refusal);
    w.mute(role::shared);
    task& ended = w.run(w.release(a));
    w.cancel(c);
    w.mute(role::shared, false);
    task& d = w.acquire(4);
    w.await(ended, d);
    CHECK(ended.released == release_result::released);
    CHECK(d.granted());
    w.finish();
  }
}

TEST_CASE("rule: a release whose caller gives up behind another request still happens") {
  for (milliseconds const lease : {0ms, 60'000ms}) {
    world w(patient());
    task& a = granted(w, w.acquire(1, {.lease = lease}));
    w.mute(role::shared);
    task& again = w.run(w.acquire(1));
    task& ended = w.release(a, true);
    REQUIRE(ended.where == task::place::behind_owner);
    ended.deadline = w.now + 1s;
    w.pass(1s);
    CHECK(ended.error == errc::timeout);
    w.mute(role::shared, false);
    w.await(again);
    w.run();
    CHECK(w.server.count("k", w.field(1)) == 1);
    w.run(w.release(again));
    CHECK(w.server.all().empty());
    CHECK(w.snapshot().released == 2);
    w.finish();
  }
}

TEST_CASE("rule: a server that knows no script even with its text is asked twice, not for ever") {
  for (bool const direct : {true, false}) {
    world w;
    warm_up(w);
    w.server.refuse("EVAL", "NOSCRIPT No matching script. Please use EVAL.", -1);
    auto const before = w.server.log.size();
    task& a = w.await(w.once(1, {.direct = direct}));
    CHECK(a.error == errc::server_error);
    CHECK(a.text.starts_with("NOSCRIPT"));
    CHECK(w.server.log.size() <= before + 12);  // as often as any call that the server refuses to run
    w.server.accept_all();
    w.finish();
  }
}

// What a holder is told of the end of its hold by a call of its own client.

namespace {

constexpr auto try_release = static_cast<unsigned char>(detail::permit_command::try_release);
constexpr auto update = static_cast<unsigned char>(detail::permit_command::update);

// About the permit that this call was granted.
how about(task const& one, milliseconds lease = 0ms, bool direct = false) {
  auto made = a_permit(lease);
  made.argument = detail::permit_semaphore_kind().field("clientA", one.owner, 0);
  made.direct = direct;
  return made;
}

}  // namespace

TEST_CASE("rule: a force_unlock ends the holds of its own client") {
  for (bool const direct : {false, true}) {
    world w;
    task& held = granted(w, w.acquire(1));
    task& inner = granted(w, w.acquire(1, {.lease = 5s}));
    task& forced = w.await(w.force_unlock({.direct = direct}));
    CHECK((forced.yes && held.losses == 1 && inner.losses == 1));
    CHECK((held.why_lost == errc::lease_lost && w.snapshot().held == 0));
    CHECK(w.server.ran("EVALSHA release") == 0);  // nothing is left to be given back
    CHECK(granted(w, w.acquire(2)).trusted(w.now));
    w.finish();
  }
}

TEST_CASE("sweep: force_unlock beside a waiter of the same client") {
  sweep({.play = [](world& w) {
    task& held = w.await(w.acquire(1));
    task& next = w.run(w.acquire(2, {.wait = 20s}));
    task& forced = w.force_unlock({.direct = true});
    w.await(next, forced);
    w.expect(forced.yes && held.losses == 1, "told at once");
    w.expect(next.granted() && next.losses == 0, "whoever comes after it is not concerned");
  }});
}

TEST_CASE("rule: a grant that a force_unlock may have removed is not believed") {
  world w;
  warm_up(w, true);
  w.mute(role::direct);
  task& taken = w.run(w.acquire(1, {.direct = true}));
  REQUIRE(w.server.has("k", w.field(1)));
  task& forced = w.force_unlock();
  taken.removed = false;
  w.await(forced);
  CHECK((forced.yes && !taken.done()));
  w.server.stranger_takes("k", stranger, 5'000);
  w.mute(role::direct, false).run();
  CHECK_FALSE(taken.done());
  w.await(taken);
  CHECK((taken.granted() && taken.trusted(w.now)));
  CHECK(w.server.count("k", w.field(1)) == 1);
  w.finish();
}

TEST_CASE("sweep: a permit that is released by its id") {
  for (bool const direct : {false, true})
    sweep({.play = [direct](world& w) {
      set_free(w, 1);
      task& held = w.await(w.acquire(1, a_permit()));
      if (!held.granted()) return;
      task& done = w.await(w.command(try_release, about(held, 0ms, direct)));
      if (held.trusted(w.now)) w.fail("a permit is shown although its id was released");
      w.expect(done.value == 1 && held.losses == 1, "released, and told");
      task& next = w.await(w.once(2, a_permit()));
      w.expect(next.granted(), "free for the next one");
    }});
}

TEST_CASE("rule: a permit is not shown from when the release of its id was sent") {
  world w;
  set_free(w, 1);
  task& held = granted(w, w.acquire(1, a_permit()));
  w.mute(role::shared);
  task& done = w.run(w.command(try_release, about(held)));
  CHECK((!done.done() && held.losses == 1 && !held.trusted(w.now)));
  expect_free(w, 1);
  w.mute(role::shared, false);
  w.await(done);
  w.finish();
  expect_free(w, 1);
}

TEST_CASE("rule: a permit whose release by id was refused is given back all the same") {
  world w;
  set_free(w, 1);
  task& held = granted(w, w.acquire(1, a_permit()));
  w.run();
  w.deafen(role::shared);
  task& done = w.run(w.command(try_release, about(held)));
  w.inject(role::shared, "*1\r\n$9\r\nERR never\r\n");
  w.lose(role::shared, fate::gone).run();
  CHECK((done.error == errc::server_error && held.losses == 1));
  w.finish();
  expect_free(w, 1);
}

TEST_CASE("sweep: a permit whose lease is set anew by its id") {
  for (milliseconds const lease : {500ms, 20'000ms})
    sweep_one_server({.play = [lease](world& w) {
      set_free(w, 1);
      task& held = w.await(w.acquire(1, a_permit(5s)));
      if (!held.granted()) return;
      task& done = w.await(w.command(update, about(held, lease)));
      w.expect(done.value == 1 && held.losses == 0, "it was there");
      bool const ends = w.server.exists("{k}:timeout");
      if (done.done() && done.value == 1 && held.trusted(w.now) && !ends) w.fail("shown, and not there");
      w.expect(held.shown.until() >= w.now + std::min(lease, 5'000ms) - 100ms, "as long as it was asked for");
      w.expect(held.shown.until() <= w.now + lease, "and no longer");
      w.pass(lease + 10ms);
      w.expect(held.losses == 1, "it ends with that");
    }});
}

TEST_CASE("rule: max_hold is told when it is reached") {
  world w;
  task& held = granted(w, w.acquire(1, {.max_hold = 35s}));
  w.pass(34'900ms);
  CHECK((held.trusted(w.now) && w.noted(event_type::max_hold_reached) == 0));
  w.pass(200ms);
  CHECK((held.losses == 1 && w.noted(event_type::max_hold_reached) == 1));
  CHECK(w.server.ran("EVALSHA renew") == 1);
  w.finish();
}

TEST_CASE("rule: who finds its hold gone tells those who wait elsewhere") {
  world w(seen_by_the_server(), 2);
  w.watch_holds = false;
  task& fixed = granted(w, w.acquire(1, {.lease = 60s}));
  task& held = granted(w, w.acquire(1));
  task& next = w.run(w.acquire(2, {.client = 1}));
  w.server.remove("k");
  w.pass(11s);  // the renewal is due after ten
  CHECK((held.losses == 1 && fixed.losses == 1));
  CHECK(next.granted());
  w.finish();
}

TEST_CASE("rule: a permit whose request the server has forgotten is an event") {
  for (bool const in_time : {true, false}) {
    world w;
    w.exclusive = false;
    w.server.set("k", 1);
    how const one{.wait = 1s, .which = &detail::semaphore_kind(), .keeps = false};
    warm_up(w);
    leave_unanswered(w, role::shared, [&] {
      w.run(w.acquire(1, one));
      w.unreachable = "nobody is there";
    });
    w.pass(in_time ? 10s : 40s);
    w.unreachable.clear();
    w.pass(20s);
    expect_free(w, in_time ? 1 : 0);
    CHECK(w.noted(event_type::permit_lost) == (in_time ? 0u : 1u));
    w.finish();
  }
}

}  // namespace rule_answers
