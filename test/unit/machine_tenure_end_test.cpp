#include <support/catch.hpp>
#include <support/unit/stories.hpp>
#include <support/unit/topologies.hpp>
#include <wire/kinds.hpp>

namespace machine_tenure_end {

using namespace latchkey;
using namespace latchkey::test;
using namespace std::chrono_literals;

// When what the server shows is no more what turns may begin in: docs/safety.md, "Local turns".

namespace {

constexpr unsigned char read_mode = 0, write_mode = 1;

how in(unsigned char mode) { return {.which = &detail::read_write_kind(), .mode = mode}; }
how const writing = in(write_mode), reading = in(read_mode);

}  // namespace

TEST_CASE("turns: a shorter lease that takes the place of an unsent release is not entered again for longer") {
  for (std::size_t const others : {0u, 1u}) {
    world w(with_turns());
    task& a = granted(w, w.acquire(1));
    w.drop(a);
    w.await(w.acquire(1, {.lease = 1s, .member = true}));
    REQUIRE(w.server.ttl("k") <= 1'000);
    if (others > 0) w.run(w.acquire(2));
    granted(w, w.acquire(1));
    CHECK(w.server.ttl("k") > 20'000);
    w.finish();
  }
}

TEST_CASE("turns: none begins in a tenure that was entered again for a joint lock") {
  world w(with_turns());
  task& plain = granted(w, w.acquire(1));
  task& vote = w.await(w.acquire(1, {.member = true}));
  task& next = w.run(w.acquire(2));
  w.run(w.release(plain));
  w.await(w.release(vote));
  w.await(next);
  CHECK(w.snapshot().handed_off == 0);
  CHECK(w.server.has("k", w.field(2)));
  w.finish();
}

TEST_CASE("turns: who is told busy in what he had before hears of its release") {
  for (int const warm_up : {0, 10}) {
    config settings = with_turns();
    settings.local_handoff.warm_up = warm_up;
    settings.lock_watchdog_timeout = 60s;
    world w(settings, 2);
    w.watch_holds = false;
    task& mine = granted(w, w.acquire(1));
    w.server.remove("k");
    task& theirs = granted(w, w.acquire(5, {.client = 1}));
    w.drop(mine);
    task& again = w.run(w.acquire(1, {.member = warm_up == 0}));
    w.pass(200ms);
    CHECK_FALSE(again.done());
    auto const before = w.now;
    w.drop(theirs);
    granted(w, again);
    CHECK(w.now - before < 5s);
    w.finish();
  }
}

// Found by the walks, seed 599288 of the cluster's: the release of the turn was forgotten.
TEST_CASE("turns: who comes back while the release of its turn waits to be sent again is granted", "[unit][machine]") {
  world w(with_turns());
  task& b = second_by_turn(w);
  w.server.flush_scripts();
  auto const sent = w.server.ran("EVALSHA release");
  auto const before = w.now;
  w.drop(b);
  w.until([&] { return w.server.ran("EVALSHA release") > sent; });
  w.step();  // the answer: NOSCRIPT
  task& again = granted(w, w.acquire(2));
  CHECK(w.now - before < 1s);
  w.await(w.release(again));
  CHECK_FALSE(w.server.exists("k"));
  w.finish();
}

TEST_CASE("write turns: who may not wait is told busy while another one reads in his field") {
  world w(with_turns());
  task& a = granted(w, w.acquire(1, writing));
  task& b = w.run(w.acquire(2, writing));
  w.drop(a);
  REQUIRE(b.granted());
  task& reads = granted(w, w.acquire(2, reading));
  w.await(w.release(b));
  auto const before = w.now;
  task& tried = w.await(w.once(1, writing));
  CHECK_FALSE(tried.error);
  CHECK_FALSE(tried.granted());
  CHECK(w.now - before < 1s);
  task& waits = w.run(w.acquire(1, writing));
  CHECK_FALSE(waits.done());
  task& also = w.await(w.once(3, writing));
  CHECK_FALSE(also.error);
  w.release(reads);
  granted(w, waits);
  w.finish();
}

TEST_CASE("write turns: what was released in a lent field is released again while another one reads there") {
  failover f(1, with_turns(impatient()));
  world& w = f.w;
  task& a = w.await(w.acquire(1, writing));
  task& b = w.run(w.acquire(2, writing));
  w.drop(a);
  REQUIRE(b.granted());
  task& reads = w.await(w.acquire(2, reading));
  f.copy();
  w.await(w.release(b));  // the next one has not heard of that
  f.promote();
  w.pass(5s);
  CHECK(f.next.count("k", w.field(1)) == 1);
  CHECK(f.next.count("k", w.field(1) + ":write") == 0);
  task& also = granted(w, w.acquire(3, reading));
  w.release(also);
  w.await(w.release(reads));
  CHECK_FALSE(f.next.exists("k"));
}

}  // namespace machine_tenure_end
