#include <support/catch.hpp>
#include <support/unit/made_kind.hpp>
#include <support/unit/stories.hpp>
#include <support/unit/sweep.hpp>

namespace seam_own_channel {

using namespace latchkey;
using namespace latchkey::test;
using namespace std::chrono_literals;

// A made-up kind whose waiters stand in a queue on the server, in the order of their arrival over all processes.

namespace {

made_kind const& fair() {
  static made_kind const the_one({.name = "queue", .hand_off = false, .own_channel = true, .hint_most = 1'000},
                                 a_queue());
  return the_one;
}

// Who stands in the queue of the server.
std::vector<std::string> queue_of(world& w) { return w.server.list("queue:k"); }

how fairly(milliseconds wait = -1ms, std::size_t client = 0) {
  return {.wait = wait, .client = client, .which = &fair()};
}

}  // namespace

TEST_CASE("seam: each waiter enters the queue of the server when it comes, and listens for itself") {
  world w(seen_by_the_server(), 2);
  task& a = granted(w, w.acquire(1, fairly()));
  task& b = w.run(w.acquire(2, fairly(-1ms, 1)));
  task& c = w.run(w.acquire(3, fairly()));
  task& d = w.run(w.acquire(4, fairly(-1ms, 1)));
  CHECK(queue_of(w) == std::vector{w.field(2, 1), w.field(3), w.field(4, 1)});
  CHECK(w.server.subscriptions() == 3);
  for (task* next : {&b, &c, &d}) {
    w.run(w.release(next == &b ? a : next == &c ? b : c));
    CHECK(next->granted());
  }
  CHECK(w.server.ran("(publish)") == 3);
  w.finish();
}

TEST_CASE("seam: who gives up leaves the queue, and the next one is told") {
  world w;
  task& a = granted(w, w.acquire(1, fairly()));
  task& b = w.acquire(2, fairly());
  task& c = w.run(w.acquire(3, fairly()));
  w.cancel(b).run();
  CHECK(queue_of(w) == std::vector{w.field(3)});
  CHECK(w.server.subscriptions() == 1);
  w.run(w.release(a));
  CHECK(c.granted());
  w.finish();
}

TEST_CASE("seam: who gives up while its try is under way leaves the queue, too") {
  world w;
  task& a = granted(w, w.acquire(1, fairly()));
  w.mute(role::shared);
  task& b = w.run(w.acquire(2, fairly()));
  REQUIRE(queue_of(w).size() == 1);
  w.cancel(b);
  w.mute(role::shared, false).run();
  CHECK(queue_of(w).empty());
  w.release(a);
  w.finish();
}

namespace {

// The second owner gives up while nothing is answered, and comes again before it is. `tries`: a try is unanswered then.
void come_again(world& w, milliseconds wait, int times, bool tries) {
  task& a = granted(w, w.acquire(1, fairly()));
  for (int i = 0; i < times; ++i) {
    task& b = w.run(w.acquire(2, fairly(wait)));
    w.mute(role::shared);
    w.pass(wait + (tries ? detail::first_try_time : 1ms));
    CHECK(b.busy() != tries);
    CHECK((b.error == errc::timeout) == tries);
    task& again = w.acquire(2, fairly(5ms));
    w.pass(6ms);
    CHECK_FALSE(again.done());
    w.mute(role::shared, false).run();
    CHECK(again.busy());
    CHECK(queue_of(w).empty());
  }
  w.release(a);
  w.finish();
}

}  // namespace

TEST_CASE("seam: who comes again while he still leaves the queue is told busy, not that time ran out") {
  world w;
  come_again(w, 5ms, 3, false);
}

TEST_CASE("seam: who comes again while a try that he gave up is under way is told busy") {
  world w;
  come_again(w, 1'005ms, 1, true);  // it looks again after a second
}

TEST_CASE("seam: a one-shot does not enter the queue") {
  world w;
  task& a = granted(w, w.acquire(1, fairly()));
  CHECK(w.run(w.once(2, fairly())).busy());
  CHECK(queue_of(w).empty());
  CHECK(w.server.ran("EVALSHA made_leave") == 0);
  w.release(a);
  w.finish();
}

TEST_CASE("seam: waiters with a queue look again every second") {
  world w;
  w.watch_holds = false;
  task& a = granted(w, w.acquire(1, fairly()));
  task& b = w.run(w.acquire(2, fairly()));
  std::size_t const before = w.server.ran("EVALSHA made_acquire");
  w.pass(5'500ms);
  CHECK(w.server.ran("EVALSHA made_acquire") == before + 5);
  w.server.remove("k");  // nobody is told
  w.pass(1'001ms);
  CHECK(b.granted());
  CHECK(a.losses == 1);
  w.drop(a);
  w.finish();
}

TEST_CASE("seam: an owner who holds it re-enters beside the queue") {
  world w;
  task& a = granted(w, w.acquire(1, fairly()));
  task& b = w.run(w.acquire(2, fairly()));
  task& again = w.run(w.acquire(1, fairly()));
  CHECK(again.granted());
  CHECK_FALSE(b.done());
  w.release(a);
  w.run(w.release(again));
  CHECK(b.granted());
  w.finish();
}

TEST_CASE("seam: where SUBSCRIBE is refused, waiters with a queue poll") {
  world w;
  w.server.refuse("SUBSCRIBE", "NOPERM this user has no permissions to access one of the channels", -1);
  task& a = granted(w, w.acquire(1, fairly()));
  task& b = w.run(w.acquire(2, fairly()));
  w.release(a);
  w.pass(1'002ms);
  CHECK(b.granted());
  w.finish();
}

TEST_CASE("seam: a message on the own channel during a try makes it try once more") {
  world w(seen_by_the_server(), 2);
  task& a = granted(w, w.acquire(1, fairly(-1ms, 1)));
  task& b = w.run(w.acquire(2, fairly()));
  w.mute(role::shared);
  w.pass(1'001ms);  // it looks again; the answer is on its way
  w.run(w.release(a));
  CHECK_FALSE(b.done());
  w.mute(role::shared, false).run();
  CHECK(b.granted());
  w.finish();
}

TEST_CASE("sweep: seam: a queue on the server") {
  sweep_one_server({.play = [](world& w) { one_gives_up(w, fair(), "queue:k"); }, .clients = 2});
}

}  // namespace seam_own_channel
