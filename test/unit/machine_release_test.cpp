#include <support/catch.hpp>
#include <support/unit/sweep.hpp>

using namespace latchkey;
using namespace latchkey::test;
using namespace std::chrono_literals;

TEST_CASE("sweep: re-entry, three deep, released one by one") {
  sweep({.play = [](world& w) {
    std::vector<task*> held;
    for (int i = 0; i < 3; ++i) {
      held.push_back(&w.acquire(1, {.direct = i == 1}));
      w.await(*held.back());
      w.expect(held.back()->granted() && w.server.count("k", w.field(1)) == i + 1, "one more");
    }
    for (int i = 2; i >= 0; --i) {
      auto const at = static_cast<std::size_t>(i);
      if (!held[at]->granted() || held[at]->shown.lost) continue;
      task& ended = w.release(*held[at], i == 0);
      w.await(ended);
      w.expect(ended.released == (i > 0 ? release_result::still_held : release_result::released), "one less");
      w.expect(w.server.count("k", w.field(1)) == i, "the server counts along");
    }
  }});
}

TEST_CASE("sweep: a dropped lease, and the lock taken again at once") {
  sweep({.play = [](world& w) {
    for (std::uint64_t i = 0; i < 3; ++i) {
      task& one = w.once(i == 2 ? 1 : i, {.direct = i == 1});
      w.await(one);
      w.expect(one.granted(), "never finds its own lock busy");
      if (one.granted()) w.drop(one);
    }
  }});
}

TEST_CASE("sweep: one owner drops a lease and comes back in the same turn") {
  sweep({.play = [](world& w) {
    task& first = w.acquire(1);
    w.await(first);
    if (first.granted()) w.drop(first);
    task& again = w.once(1);
    w.await(again);
    w.expect(again.granted() && w.server.ran("EVALSHA release") == 0, "the acquire says it all");
  }});
}

TEST_CASE("sweep: a dropped lease and two who come after it") {
  sweep({.play = [](world& w) {
    task& first = w.acquire(1);
    w.await(first);
    if (first.granted()) w.drop(first);
    task& second = w.acquire(2);
    task& third = w.acquire(3, {.wait = 5s});
    w.await(second);
    w.expect(second.granted(), "handed on");
    if (second.granted()) w.drop(second);
    w.await(third);
    w.expect(third.granted(), "handed on again");
  }});
}

TEST_CASE("sweep: a fixed lease that ends by itself, with a waiter behind it") {
  sweep({.play = [](world& w) {
    task& one = w.acquire(1, {.lease = 2s});
    w.await(one);
    task& next = w.acquire(2);
    w.await(next);
    w.expect(one.losses == 1 && next.granted(), "lost, and the next one has it");
    w.expect(next.done_at - one.done_at < 2'010ms, "in time");
    if (one.granted()) w.drop(one);
  }});
}

TEST_CASE("sweep: extend, shorter and longer") {
  sweep({.play = [](world& w) {
    task& one = w.acquire(1);
    w.await(one);
    if (!one.granted()) return;
    task& longer = w.extend(one, 60s);
    w.await(longer);
    w.expect(longer.yes && one.shown.until() - w.now == 60s, "longer");
    task& shorter = w.extend(one, 3s, true);
    w.await(shorter);
    w.expect(shorter.yes && one.shown.until() - w.now == 3s, "shorter");
    w.pass(4s);
    w.expect(one.losses == 1, "a fixed lease is not renewed");
    task& late = w.extend(one, 3s);
    w.await(late);
    w.expect(!late.yes, "too late");
  }});
}

TEST_CASE("sweep: an inner hold with a short lease does not shorten the outer one") {
  sweep({.play = [](world& w) {
    task& outer = w.acquire(1, {.lease = 20s});
    w.await(outer);
    task& inner = w.acquire(1, {.lease = 1s});
    w.await(inner);
    w.pass(2s);
    w.expect(inner.losses == 1 && outer.losses == 0, "only the inner one is lost");
    w.expect(w.server.count("k", w.field(1)) == 1, "it is given back on the server");
    if (outer.granted() && !outer.shown.lost) {
      task& ended = w.release(outer);
      w.await(ended);
      w.expect(ended.released == release_result::released, "released");
    }
  }});
}

TEST_CASE("sweep: force_unlock from another client") {
  sweep({.play =
             [](world& w) {
               w.watch_holds = false;
               task& one = w.acquire(1);
               w.await(one);
               task& waiter = w.acquire(2, {.wait = 25s, .client = 1});
               w.run();
               task& forced = w.force_unlock({.direct = true, .client = 1});
               w.await(forced);
               w.expect(forced.yes, "there was one");
               w.await(waiter);
               w.expect(waiter.granted(), "the waiter has it");
               w.pass(31s);
               w.expect(one.losses == 1, "the holder learns of it by its renewal");
             },
         .clients = 2});
}

TEST_CASE("sweep: unlock by owner") {
  sweep({.play = [](world& w) {
    task& one = w.acquire(1, {.leased = false});
    w.await(one);
    task& wrong = w.unlock(2);
    w.await(wrong);
    if (wrong.error != errc::not_owner) w.fail("somebody else's lock was unlocked");
    task& right = w.unlock(1, {.direct = true});
    w.await(right);
    w.expect(!right.error && right.released == release_result::released, "released");
  }});
}

TEST_CASE("sweep: unlock leaves what a lease shows") {
  sweep({.play = [](world& w) {
    task& outer = w.acquire(1, {.leased = false});
    w.await(outer);
    task& leased = w.acquire(1);
    w.await(leased);
    task& first = w.unlock(1);
    w.await(first);
    w.expect(!first.error && first.released == release_result::still_held, "the hold without a lease");
    w.expect(leased.trusted(w.now) && w.server.count("k", w.field(1)) == 1, "the lease has its own");
    task& second = w.unlock(1, {.direct = true});
    w.await(second);
    if (second.error != errc::not_owner && !outer.ended) w.fail("the hold of a lease was unlocked");
    w.expect(second.error == errc::not_owner && second.text.find("lease") != std::string::npos, "and why");
    w.expect(leased.trusted(w.now), "still");
  }});
}
