#include <support/catch.hpp>
#include <support/unit/stories.hpp>

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
  task& with_it = w.once(2);
  w.run();
  w.server.stranger_releases("k", "stranger:1");
  task& c = w.once(3);
  w.mute(role::shared, false);
  w.run();
  CHECK(a.busy());
  CHECK(with_it.busy());
  CHECK(c.granted());
  w.finish();
}

TEST_CASE("rule: a busy answer while a dropped lease is being released leaves later one-shots parked") {
  world w;
  task& holder = granted(w, w.acquire(9));
  w.mute(role::shared);
  task& a = w.once(1);
  w.run();
  w.drop(holder);
  task& c = w.once(3);
  w.run();
  w.mute(role::shared, false);
  w.run();
  CHECK(a.busy());
  CHECK(c.granted());
  w.finish();
}

TEST_CASE("rule: an abandoned first grant proves that other holds are lost, too") {
  world w;
  w.watch_holds = false;
  task& a = granted(w, w.acquire(1));
  task& listener = w.acquire(4);
  w.run();
  w.cancel(listener);  // its subscription lingers
  w.run();
  w.server.clear();
  w.mute(role::shared);
  task& b = w.once(2, {.direct = true});
  w.run();
  w.cancel(b);
  w.mute(role::shared, false);
  w.run();
  CHECK(a.losses == 1);
  task& c = w.acquire(3);
  w.run();
  CHECK(c.granted());  // and does not sleep behind a belief that is wrong
  w.drop(a);
  w.finish();
}

TEST_CASE("rule: who drops a lease and comes back at once queues behind who waited") {
  world w;
  task& a = granted(w, w.acquire(1));
  task& b = w.acquire(2);
  w.run();
  w.drop(a);
  task& again = w.acquire(1);
  w.run();
  CHECK(b.granted());
  CHECK_FALSE(again.done());
  w.drop(b);
  w.run();
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
      task& a = w.once(1);
      w.run();
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
    task& c = w.acquire(3);
    w.run();
    w.server.refuse("EVALSHA hand_off", refusal);
    w.mute(role::shared);
    task& ended = w.release(a);
    w.run();
    w.cancel(c);
    w.mute(role::shared, false);
    task& d = w.acquire(4);
    w.await(ended);
    w.await(d);
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
    task& again = w.acquire(1);
    w.run();
    task& ended = w.release(a, true);
    REQUIRE(ended.where == task::place::behind_owner);
    ended.deadline = w.now + 1s;
    w.pass(1s);
    CHECK(ended.error == errc::timeout);
    w.mute(role::shared, false);
    w.await(again);
    w.run();
    CHECK(w.server.count("k", w.field(1)) == 1);
    w.release(again);
    w.run();
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
    task& a = w.once(1, {.direct = direct});
    w.await(a);
    CHECK(a.error == errc::server_error);
    CHECK(a.text.starts_with("NOSCRIPT"));
    CHECK(w.server.log.size() <= before + 12);  // as often as any call that the server refuses to run
    w.server.accept_all();
    w.finish();
  }
}
