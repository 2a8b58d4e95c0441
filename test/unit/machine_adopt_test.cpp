// Holds that leave one client without a release and go on in another one.
#include <support/catch.hpp>
#include <support/unit/stories.hpp>
#include <support/unit/transfers.hpp>
#include <wire/kinds.hpp>

using namespace latchkey;
using namespace latchkey::test;
using namespace std::chrono_literals;

namespace {

detail::kind const& kind_of(int index) {
  detail::kind const* const all[] = {&detail::reentrant_kind(), &detail::non_reentrant_kind(), &detail::spin_kind(),
                                     &detail::fenced_kind(),    &detail::plain_kind(),         &detail::fair_kind()};
  return *all[index];
}

bool free_of(world& w, task const& held) {
  task& asked = w.await(w.ask(detail::query::is_locked, 0, {.name = held.key, .which = held.which, .mode = held.mode}));
  return asked.value == 0;
}

// Granted to owner 1 of the first client, detached, and adopted by owner 77 of the second one.
task& adopted(world& w, milliseconds lease) {
  task& held = granted(w, w.acquire(1, {.lease = lease}));
  if (transfers::detach(w, held).owner.empty()) w.fail("it should be detached");
  task& mine = transfers::adopt(w, 77, held, {.client = 1});
  if (!mine.yes) w.fail("it should be adopted");
  return mine;
}

}  // namespace

TEST_CASE("a detached hold is neither renewed nor released", "[unit][machine]") {
  world w;
  task& held = w.await(w.acquire(1));
  w.pass(25s);
  auto const made = transfers::detach(w, held);
  CHECK(made.refused.empty());
  CHECK(made.owner == w.field(1));
  CHECK(w.snapshot().held == 0);
  CHECK(w.noted(event_type::left_to_lease) == 1);
  w.pass(15s);
  CHECK(held.losses == 0);
  CHECK(w.server.has("k", w.field(1)));
  w.pass(16s);
  CHECK_FALSE(w.server.has("k", w.field(1)));
  CHECK(transfers::detach(w, held).owner.empty());
  w.finish();
}

TEST_CASE("who waits behind a detached hold waits for its lease", "[unit][machine]") {
  world w;
  task& held = w.await(w.acquire(1));
  task& next = w.run(w.acquire(2));
  REQUIRE(transfers::detach(w, held).refused.empty());
  w.run();
  CHECK_FALSE(next.done());
  w.pass(25s);
  CHECK_FALSE(next.done());
  w.pass(6s);
  CHECK(next.granted());
  w.await(w.release(next));
  w.finish();
}

TEST_CASE("another client adopts a hold, extends and releases it", "[unit][machine]") {
  world w(seen_by_the_server(), 2);
  int const index = GENERATE(range(0, 6));
  auto const& which = kind_of(index);
  INFO(which.rules().name);
  task& held = w.await(w.acquire(1, {.lease = 20s, .which = &which}));
  w.pass(5s);
  REQUIRE_FALSE(transfers::detach(w, held).owner.empty());
  task& mine = transfers::adopt(w, 77, held, {.client = 1});
  REQUIRE(mine.yes);
  CHECK(mine.shown.until() <= w.now + 15s);
  CHECK(mine.shown.until() > w.now + 14s);
  CHECK(w.snapshot(1).held == 1);
  CHECK(w.await(w.ask(detail::query::is_held_by, 77, {.client = 1, .which = &which})).value == 1);
  w.await(w.extend(mine, 60s));
  CHECK(mine.shown.until() > w.now + 59s);
  w.pass(50s);
  CHECK(mine.losses == 0);
  CHECK_FALSE(free_of(w, held));
  task& waiter = w.acquire(5, {.lease = 5s, .which = &which});
  w.pass(200ms);
  CHECK_FALSE(waiter.done());
  w.await(w.release(mine));
  granted(w, waiter);
  w.await(w.release(waiter));
  w.finish();
}

TEST_CASE("each side of a read-write lock is adopted with its own time", "[unit][machine]") {
  world w(seen_by_the_server(), 2);
  w.exclusive = false;
  auto const& which = detail::read_write_kind();
  task& reads = w.acquire(1, {.lease = 20s, .which = &which});
  task& longer = w.acquire(2, {.lease = 90s, .which = &which});
  w.await(reads, longer);
  REQUIRE_FALSE(transfers::detach(w, reads).owner.empty());
  task& mine = transfers::adopt(w, 77, reads, {.client = 1});
  REQUIRE(mine.yes);
  CHECK(mine.shown.until() <= w.now + 20s);
  w.await(w.release(mine));
  w.await(w.release(longer));
  task& writes = w.await(w.acquire(3, {.lease = 30s, .which = &which, .mode = 1}));
  CHECK(transfers::detach(w, writes).owner == w.field(3));
  task& taken = transfers::adopt(w, 78, writes, {.client = 1});
  REQUIRE(taken.yes);
  CHECK(taken.shown.until() > w.now + 29s);
  w.await(w.release(taken));
  CHECK(free_of(w, writes));
  w.finish();
}

TEST_CASE("the client that detached a hold adopts it under its own owner", "[unit][machine]") {
  world w;
  task& held = w.await(w.acquire(1, {.lease = 20s}));
  REQUIRE_FALSE(transfers::detach(w, held).owner.empty());
  auto const said = w.server.log.size();
  task& again = transfers::adopt(w, 1, held);
  REQUIRE(again.yes);
  CHECK(w.server.log.size() == said + 2);  // the question, and the renewal to what is left
  task& twice = transfers::adopt(w, 1, held);
  CHECK(twice.error == errc::already_held);
  w.await(w.release(again));
  CHECK_FALSE(w.server.has("k", w.field(1)));
  w.finish();
}

TEST_CASE("an adopted hold is detached once more, under the owner who was granted it", "[unit][machine]") {
  world w(seen_by_the_server(), 3);
  task& held = w.await(w.acquire(1, {.lease = 20s}));
  REQUIRE_FALSE(transfers::detach(w, held).owner.empty());
  task& mine = transfers::adopt(w, 77, held, {.client = 1});
  REQUIRE(mine.yes);
  CHECK(transfers::detach(w, mine).owner == w.field(1));
  CHECK(mine.losses == 0);
  CHECK(w.snapshot(1).held == 0);
  task& next = transfers::adopt(w, 78, held, {.client = 2});
  REQUIRE(next.yes);
  w.await(w.release(next));
  CHECK_FALSE(w.server.has("k", w.field(1)));
  w.finish();
}

TEST_CASE("an owner who has lost an adopted hold acquires under its own name", "[unit][machine]") {
  world w(seen_by_the_server(), 2);
  task& mine = adopted(w, 10s);
  w.pass(11s);
  CHECK(mine.losses == 1);
  task& own = w.await(w.acquire(77, {.lease = 10s, .client = 1}));
  CHECK(w.server.has("k", w.field(77, 1)));
  CHECK_FALSE(w.server.has("k", w.field(1)));
  w.drop(mine);
  w.await(w.release(own));
  w.finish();
}

TEST_CASE("who drops an adopted hold and comes back at once does not stand in its own way", "[unit][machine]") {
  world w(seen_by_the_server(), 2);
  task& mine = adopted(w, 10s);
  auto const before = w.now;
  w.drop(mine);
  task& own = granted(w, w.acquire(77, {.client = 1}));
  CHECK(w.now - before < 1s);
  w.await(w.release(own));
  CHECK_FALSE(w.server.exists("k"));
  w.finish();
}

TEST_CASE("who has adopted a hold takes it once more, and is renewed, under the owner of the token",
          "[unit][machine]") {
  world w(seen_by_the_server(), 2);
  w.watch_holds = false;  // looks for the owner's own field
  task& mine = adopted(w, 20s);
  task& inner = w.await(w.acquire(77, {.client = 1}));
  CHECK(w.server.count("k", w.field(1)) == 2);
  CHECK_FALSE(w.server.has("k", w.field(77, 1)));
  w.pass(70s);
  CHECK(inner.losses == 0);
  CHECK(w.server.count("k", w.field(1)) == 1);
  w.drop(mine);
  w.await(w.release(inner));
  CHECK_FALSE(w.server.has("k", w.field(1)));
  w.finish();
}

TEST_CASE("an adopted hold that ends by time is told, and what others have of it is left alone", "[unit][machine]") {
  world w(seen_by_the_server(), 3);
  w.exclusive = false;
  task& held = w.await(w.acquire(1, {.lease = 10s}));
  REQUIRE_FALSE(transfers::detach(w, held).owner.empty());
  task& early = transfers::adopt(w, 77, held, {.client = 1});
  task& late = transfers::adopt(w, 78, held, {.client = 2});
  REQUIRE(early.yes);
  REQUIRE(late.yes);
  w.await(w.extend(late, 60s));
  w.pass(11s);
  CHECK(early.losses == 1);
  CHECK(late.losses == 0);
  CHECK(w.server.has("k", w.field(1)));
  w.drop(early);
  w.await(w.release(late));
  CHECK_FALSE(w.server.has("k", w.field(1)));
  w.finish();
}

TEST_CASE("who enters an adopted hold again, and has not asked when it ends, takes it as its own", "[unit][machine]") {
  world w(patient(), 2);
  task& mine = adopted(w, 10s);
  w.pass(9'900ms);
  w.unreachable = "no route";
  w.lose(role::shared, fate::gone, 1).run();
  task& again = w.acquire(77, {.lease = 30s, .client = 1});
  w.pass(300ms);
  REQUIRE(mine.losses == 1);
  w.unreachable.clear();
  granted(w, again);
  CHECK(w.server.has("k", w.field(77, 1)));
  CHECK_FALSE(w.server.has("k", w.field(1)));
  w.drop(mine);
  w.await(w.release(again));
  w.finish();
}

TEST_CASE("who entered an adopted hold again, and hears it behind the end, takes nothing of others",
          "[unit][machine]") {
  bool const answered = GENERATE(false, true);
  world w(patient(), 3);
  w.exclusive = false;
  task& held = w.await(w.acquire(1, {.lease = 10s}));
  REQUIRE_FALSE(transfers::detach(w, held).owner.empty());
  task& early = transfers::adopt(w, 77, held, {.client = 1});
  task& late = transfers::adopt(w, 78, held, {.client = 2});
  w.await(w.extend(late, 60s));
  w.pass(9'900ms);
  w.mute(role::shared, true, 1);
  task& again = w.run(w.acquire(77, {.lease = 2s, .client = 1}));
  w.pass(200ms);
  REQUIRE(early.losses == 1);
  if (answered)
    w.mute(role::shared, false, 1);
  else
    w.lose(role::shared, fate::gone, 1);
  w.pass(5s);
  CHECK(w.server.has("k", w.field(1)));
  CHECK_FALSE(again.granted());
  CHECK(late.losses == 0);
  w.drop(early);
  w.await(w.release(late));
  w.await(again);
  CHECK(w.server.has("k", w.field(77, 1)));
  w.await(w.release(again));
  w.finish();
}

TEST_CASE("what is released since the server was asked is not adopted once more", "[unit][machine]") {
  bool const own = GENERATE(false, true);
  std::size_t const by = own ? 0 : 1;
  world w(seen_by_the_server(), 2);
  task& held = granted(w, w.acquire(1, {.lease = 60s}));
  REQUIRE_FALSE(transfers::detach(w, held).owner.empty());
  task& mine = transfers::adopt(w, own ? 1 : 77, held, {.client = by});
  REQUIRE(mine.yes);
  task& again = transfers::adopt(w, own ? 1 : 78, held, {.client = by}, [&] { w.drop(mine); });
  CHECK_FALSE(again.error);
  CHECK_FALSE(again.yes);
  w.run();
  CHECK_FALSE(w.server.exists("k"));
  w.finish();
}

TEST_CASE("what has ended at the server since that was asked is not adopted", "[unit][machine]") {
  bool const others = GENERATE(false, true);
  world w(seen_by_the_server(), 2);
  task& held = granted(w, w.acquire(1, {.lease = 60s}));
  REQUIRE_FALSE(transfers::detach(w, held).owner.empty());
  task& mine = transfers::adopt(w, 1, held);
  REQUIRE(mine.yes);
  std::size_t const by = others ? 1 : 0;
  task& late = transfers::adopt(w, others ? 77 : 1, held, {.client = by}, [&] { w.await(w.release(mine)); });
  CHECK_FALSE(late.error);
  CHECK_FALSE(late.yes);
  CHECK(late.losses == 0);
  CHECK(w.snapshot(by).held == 0);
  w.finish();
}

TEST_CASE("what the server shows no more is not adopted", "[unit][machine]") {
  world w(seen_by_the_server(), 2);
  task& held = w.await(w.acquire(1, {.lease = 10s}));
  REQUIRE_FALSE(transfers::detach(w, held).owner.empty());
  w.pass(11s);
  CHECK(w.await(w.ask(detail::query::rest, 0, {.client = 1, .argument = w.field(1)})).value == -2);
  task& other = w.await(w.acquire(2, {.lease = 10s}));
  CHECK(w.await(w.ask(detail::query::rest, 0, {.client = 1, .argument = w.field(1)})).value == -2);
  w.await(w.release(other));
  w.finish();
}

TEST_CASE("what an owner has besides keeps a hold from being detached", "[unit][machine]") {
  world w;
  task& outer = w.await(w.acquire(1, {.lease = 10s}));
  task& inner = w.await(w.acquire(1, {.lease = 10s}));
  CHECK(transfers::detach(w, inner).refused == "its owner holds the lock more than once");
  w.await(w.release(inner));
  task& extension = w.extend(outer, 20s);
  CHECK(transfers::detach(w, outer).refused == "another call of its owner is under way");
  w.await(extension);
  CHECK_FALSE(transfers::detach(w, outer).owner.empty());
  CHECK(w.server.has("k", w.field(1)));
  w.pass(21s);
  w.finish();
}

TEST_CASE("a hold that began as a local turn under another owner is not detached", "[unit][machine]") {
  world w(with_turns());
  task& first = w.await(w.acquire(1));
  task& second = w.run(w.acquire(2));
  w.drop(first);
  granted(w, second);
  CHECK_FALSE(transfers::detach(w, second).refused.empty());
  CHECK(second.losses == 0);
  w.await(w.release(second));
  w.finish();
}

TEST_CASE("a force-unlock of one field ends an adopted hold of it alone", "[unit][machine]") {
  world w(seen_by_the_server(), 2);
  task& mine = adopted(w, 10s);
  w.await(w.force_unlock({.client = 1, .argument = w.field(77, 1)}));
  CHECK(mine.losses == 0);
  w.await(w.force_unlock({.client = 1, .argument = w.field(1)}));
  CHECK(mine.losses == 1);
  w.drop(mine);
  w.finish();
}
