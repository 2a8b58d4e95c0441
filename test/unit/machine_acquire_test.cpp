#include <support/catch.hpp>
#include <support/unit/sweep.hpp>

using namespace latchkey;
using namespace latchkey::test;
using namespace std::chrono_literals;

TEST_CASE("a free lock: one call to take it, one to release it") {
  world w;
  task& first = w.await(w.acquire(1));
  REQUIRE(first.granted());
  w.await(w.release(first));
  task& second = w.await(w.acquire(2));
  CHECK(w.await(w.release(second)).released == release_result::released);
  CHECK(w.server.ran("EVALSHA acquire") == 2);
  CHECK(w.server.ran("EVALSHA release") == 2);
  CHECK(w.server.ran("EVAL") == 4);
  CHECK(w.server.ran("SUBSCRIBE") == 0);
  w.finish();
}

TEST_CASE("sweep: a free lock is taken and released") {
  sweep({.play = [](world& w) {
    task& one = w.await(w.acquire(1));
    w.expect(one.granted(), "granted");
    if (!one.granted()) return;
    task& ended = w.await(w.release(one));
    w.expect(ended.released == release_result::released, "released");
  }});
}

TEST_CASE("sweep: a free lock on the direct lane") {
  sweep({.play = [](world& w) {
    for (int i = 0; i < 3; ++i) {
      task& one = w.await(w.acquire(1, {.direct = true}));
      w.expect(one.granted(), "granted");
      if (!one.granted()) continue;
      task& ended = w.await(w.release(one, true));
      w.expect(ended.released == release_result::released, "released");
      w.run();
    }
  }});
}

TEST_CASE("sweep: a stranger has the lock, and releases it") {
  sweep_one_server({.play = [](world& w) {
    w.server.stranger_takes("k", "stranger:1", 20'000);
    task& one = w.run(w.acquire(1));
    w.expect(!one.done() && w.server.subscriptions() == 1, "waits, subscribed");
    w.pass(5s);
    w.server.stranger_releases("k", "stranger:1");
    w.run();
    w.expect(one.granted(), "granted at the message");
    w.await(one);
  }});
}

TEST_CASE("sweep: a stranger has the lock, and its lease ends") {
  sweep({.play = [](world& w) {
    w.server.stranger_takes("k", "stranger:1", 2'000);
    task& one = w.await(w.acquire(1, {.direct = true}));
    w.expect(one.granted() && one.done_at - one.started < 2'010ms, "granted when the hint is over");
  }});
}

TEST_CASE("sweep: a stranger has the lock longer than the caller waits") {
  sweep({.play = [](world& w) {
    w.server.stranger_takes("k", "stranger:1", 60'000);
    task& one = w.await(w.acquire(1, {.wait = 3s}));
    w.expect(one.busy() && one.done_at - one.started == 3s, "busy when the wait ends");
    w.server.stranger_releases("k", "stranger:1");
  }});
}

TEST_CASE("sweep: three waiters of one client, who get it from each other") {
  sweep({.play = [](world& w) {
    task& a = w.await(w.acquire(1));
    task& b = w.acquire(2);
    task& c = w.run(w.acquire(3));
    w.expect(!b.done() && !c.done(), "wait");
    if (a.granted()) w.await(w.release(a));
    w.await(b);
    w.expect(b.granted() && !c.done(), "handed on");
    if (b.granted()) w.await(w.release(b, true));
    w.await(c);
    w.expect(c.granted() && w.snapshot().handed_off == 2, "handed on again");
  }});
}

TEST_CASE("sweep: two clients in turn") {
  sweep({.play =
             [](world& w) {
               task& a = w.await(w.acquire(1));
               task& b = w.run(w.acquire(1, {.client = 1}));
               w.expect(a.granted() && !b.done(), "the other waits");
               if (a.granted()) w.await(w.release(a));
               w.await(b);
               w.expect(b.granted(), "the message wakes it");
             },
         .clients = 2});
}
