#include <support/catch.hpp>
#include <support/unit/made_kind.hpp>
#include <support/unit/stories.hpp>
#include <support/unit/sweep.hpp>
#include <wire/kinds.hpp>

using namespace latchkey;
using namespace latchkey::test;
using namespace std::chrono_literals;

TEST_CASE("a hold that was gone when it was released is told as lost") {
  for (bool const awaited : {true, false}) {
    world w(seen_by_the_server());
    task& a = granted(w, w.acquire(1));
    w.server.remove("k");
    if (awaited)
      w.release(a);
    else
      w.drop(a);
    w.run();
    CHECK(w.noted(event_type::released) == 0);
    CHECK(w.noted(event_type::lost) == 1);
    w.finish();
  }
}

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
      task& ended = w.await(w.release(*held[at], i == 0));
      w.expect(ended.released == (i > 0 ? release_result::still_held : release_result::released), "one less");
      w.expect(w.server.count("k", w.field(1)) == i, "the server counts along");
    }
  }});
}

TEST_CASE("sweep: a dropped lease, and the lock taken again at once") {
  sweep({.play = [](world& w) {
    for (std::uint64_t i = 0; i < 3; ++i) {
      task& one = w.await(w.once(i == 2 ? 1 : i, {.direct = i == 1}));
      w.expect(one.granted(), "never finds its own lock busy");
      if (one.granted()) w.drop(one);
    }
  }});
}

TEST_CASE("sweep: one owner drops a lease and comes back in the same turn") {
  sweep({.play = [](world& w) {
    task& first = w.await(w.acquire(1));
    if (first.granted()) w.drop(first);
    task& again = w.await(w.once(1));
    w.expect(again.granted() && w.server.ran("EVALSHA release") == 0, "the acquire says it all");
  }});
}

TEST_CASE("sweep: a dropped lease and two who come after it") {
  sweep({.play = [](world& w) {
    task& first = w.await(w.acquire(1));
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
    task& one = w.await(w.acquire(1, {.lease = 2s}));
    task& next = w.await(w.acquire(2));
    w.expect(one.losses == 1 && next.granted(), "lost, and the next one has it");
    w.expect(next.done_at - one.done_at < 2'010ms, "in time");
    if (one.granted()) w.drop(one);
  }});
}

TEST_CASE("sweep: extend, shorter and longer") {
  sweep({.play = [](world& w) {
    task& one = w.await(w.acquire(1));
    if (!one.granted()) return;
    task& longer = w.await(w.extend(one, 60s));
    w.expect(longer.yes && one.shown.until() - w.now == 60s, "longer");
    task& shorter = w.await(w.extend(one, 3s, true));
    w.expect(shorter.yes && one.shown.until() - w.now == 3s, "shorter");
    w.pass(4s);
    w.expect(one.losses == 1, "a fixed lease is not renewed");
    task& late = w.await(w.extend(one, 3s));
    w.expect(!late.yes, "too late");
  }});
}

TEST_CASE("sweep: an extension that is not answered ends with the hold that it extends") {
  bool const direct = GENERATE(false, true);
  sweep({.play = [direct](world& w) {
    task& one = w.await(w.acquire(1, {.lease = 1s}));
    if (!one.granted()) return;
    w.mute(role::shared).mute(role::direct);
    task& longer = w.extend(one, 20s, direct);
    task& longest = w.extend(one, 30s);
    w.pass(1s);
    w.expect(one.losses == 1 && longer.done() && longest.done(), "both end with it");
    w.expect(!longer.yes && !longest.yes && !longer.error && !longest.error, "they say that it is lost");
    task& late = w.run(w.extend(one, 20s, direct));
    w.expect(late.done() && !late.yes && !late.error, "so does the next");
    w.mute(role::shared, false).mute(role::direct, false);
    task& next = w.await(w.acquire(2, {.wait = 5s}));
    w.expect(next.granted(), "what they did is given back");
    w.release(next);
  }});
}

TEST_CASE("an extension ends with the hold, whatever has ended that") {
  enum class by { drop, force_unlock };
  auto const ended = GENERATE(by::drop, by::force_unlock);
  world w;
  w.faulty = true;
  w.watch_holds = false;
  warm_up(w, true);
  task& held = granted(w, w.acquire(1, {.lease = 5s}));
  w.mute(role::direct);
  task& longer = w.run(w.extend(held, 60s, true));
  if (ended == by::force_unlock)
    w.await(w.force_unlock());
  else
    w.drop(held);
  w.run();
  CHECK(longer.done());
  CHECK_FALSE(longer.yes);
  CHECK_FALSE(longer.error);
  w.mute(role::direct, false);
  w.await(w.acquire(2, {.wait = 10s}));
}

TEST_CASE("sweep: an inner hold with a short lease does not shorten the outer one") {
  sweep({.play = [](world& w) {
    task& outer = w.await(w.acquire(1, {.lease = 20s}));
    task& inner = w.await(w.acquire(1, {.lease = 1s}));
    w.pass(2s);
    w.expect(inner.losses == 1 && outer.losses == 0, "only the inner one is lost");
    w.expect(w.server.count("k", w.field(1)) == 1, "it is given back on the server");
    if (outer.granted() && !outer.shown.lost) {
      task& ended = w.await(w.release(outer));
      w.expect(ended.released == release_result::released, "released");
    }
  }});
}

TEST_CASE("sweep: force_unlock from another client") {
  sweep({.play =
             [](world& w) {
               w.watch_holds = false;
               task& one = w.await(w.acquire(1));
               task& waiter = w.run(w.acquire(2, {.wait = 25s, .client = 1}));
               task& forced = w.await(w.force_unlock({.direct = true, .client = 1}));
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
    w.await(w.acquire(1, {.leased = false}));
    task& wrong = w.await(w.unlock(2));
    if (wrong.error != errc::not_owner) w.fail("somebody else's lock was unlocked");
    task& right = w.await(w.unlock(1, {.direct = true}));
    w.expect(!right.error && right.released == release_result::released, "released");
  }});
}

TEST_CASE("sweep: unlock leaves what a lease shows") {
  sweep({.play = [](world& w) {
    task& outer = w.await(w.acquire(1, {.leased = false}));
    task& leased = w.await(w.acquire(1));
    task& first = w.await(w.unlock(1));
    w.expect(!first.error && first.released == release_result::still_held, "the hold without a lease");
    w.expect(leased.trusted(w.now) && w.server.count("k", w.field(1)) == 1, "the lease has its own");
    task& second = w.await(w.unlock(1, {.direct = true}));
    if (second.error != errc::not_owner && !outer.ended) w.fail("the hold of a lease was unlocked");
    w.expect(second.error == errc::not_owner && second.text.find("lease") != std::string::npos, "and why");
    w.expect(leased.trusted(w.now), "still");
  }});
}

// A client that drops what it has and takes it again before the release has left, over and over.

namespace {

made_kind const& without_hand_off() {
  static made_kind const the_one({.name = "plain", .hand_off = false});
  return the_one;
}

made_kind const& with_hand_off() {
  static made_kind const the_one({.name = "handed"});
  return the_one;
}

// How often the first client takes it until the waiter of the second one has it; at most 200.
int turns_until_passed(world& w, task*& held, task const& waiter, how const& options, bool by_others) {
  int turns = 0;
  std::uint64_t owner = 1;
  while (!waiter.done() && turns < 200) {
    w.drop(*held);
    held = &w.acquire(by_others ? 100 + ++owner : owner, options);
    while (!held->done() && !waiter.done() && w.step()) continue;
    turns += held->done();
    if (!held->done()) break;
  }
  w.run();
  return turns;
}

}  // namespace

TEST_CASE("a lock that is dropped and taken again before its release has left is passed on at the end of a streak") {
  for (bool const by_others : {false, true})
    for (auto const* which : {&with_hand_off(), &without_hand_off()})
      for (std::uint64_t seed = 0; seed <= 10; ++seed) {
        CAPTURE(by_others, which->rules().name, seed);
        world w(streak_of(5), 2);
        how const ours{.which = which};
        task* held = &w.acquire(1, ours);
        w.await(*held);
        task& waiter = w.acquire(2, {.client = 1, .which = which});
        w.pass(1s);
        w.any_order = seed;  // 0: the release and what follows it arrive together
        CHECK(turns_until_passed(w, held, waiter, ours, by_others) <= 60);
        CHECK(w.server.ran("(publish)") >= 1);
        CHECK(waiter.granted());
        w.finish();
      }
}

TEST_CASE("a streak of retakes also ends by time") {
  world w(streak_of(1'000'000, 10ms));
  task* held = &granted(w, w.acquire(1));
  for (std::size_t const published : {0u, 0u, 1u}) {
    w.drop(*held);
    held = &granted(w, w.acquire(1));
    CHECK(w.server.ran("(publish)") == published);
    w.pass(6ms);
  }
  w.finish();
}

TEST_CASE("who drops a fair lock and takes it again at once stands behind those who wait") {
  world w(seen_by_the_server(), 2);
  task& held = granted(w, w.acquire(1, {.which = &detail::fair_kind()}));
  task& waiter = w.run(w.acquire(2, {.client = 1, .which = &detail::fair_kind()}));
  w.drop(held);
  task& again = w.run(w.acquire(1, {.which = &detail::fair_kind()}));
  CHECK(waiter.granted());
  CHECK_FALSE(again.done());
  w.release(waiter);
  granted(w, again);
  w.finish();
}

TEST_CASE("a release whose place was taken by who cannot try at once is not forgotten when he leaves") {
  world w(streak_of(1), 2);
  how const read{.which = &detail::read_write_kind(), .mode = 0};
  task& a = granted(w, w.acquire(1, read));
  task& b = granted(w, w.acquire(2, read));
  w.run();
  w.drop(a);
  w.release(b);
  w.cancel(w.acquire(1, read));
  CHECK(w.run(w.acquire(3, {.client = 1, .which = &detail::read_write_kind(), .mode = 1})).granted());
  w.finish();
}

namespace {

// Everybody wants it at once and keeps it for no time.
void all_take_turns(world& w, std::uint64_t callers) {
  std::vector<task*> all;
  for (std::uint64_t i = 1; i <= callers; ++i) all.push_back(&w.acquire(i));
  for (task* one : all) {
    w.await(*one);
    if (one->granted()) w.release(*one);
  }
  w.run();
}

}  // namespace

TEST_CASE("sweep: a streak of hand-offs ends with a real release") {
  sweep({.play =
             [](world& w) {
               all_take_turns(w, 6);
               w.expect(w.snapshot().acquired == 6, "all had it");
               w.expect(w.snapshot().handed_off <= 4 && w.server.ran("(publish)") >= 2, "others had their chance");
             },
         .settings = [] { return streak_of(2, 1s); }});
}

TEST_CASE("after a streak the lock is left to other clients for a moment") {
  for (std::uint64_t seed = 0; seed <= 20; ++seed) {
    CAPTURE(seed);
    world w(streak_of(1), 2);
    task& a = granted(w, w.acquire(1));
    task& b = w.acquire(2);
    task& c = w.acquire(3);
    task& other = w.run(w.acquire(4, {.client = 1}));
    w.release(a);
    w.await(b);
    w.any_order = seed;
    w.run(w.release(b));
    CHECK(other.granted());
    CHECK_FALSE(c.done());
    w.pass(1ms);
    w.release(other);
    granted(w, c);
    w.finish();
  }
}

TEST_CASE("after a streak that nobody else waited behind the next waiter tries when the moment is over") {
  world w(streak_of(1));
  task& a = granted(w, w.acquire(1));
  task& b = w.acquire(2);
  task& c = w.run(w.acquire(3));
  w.release(a);
  w.await(b);
  w.run(w.release(b));
  CHECK_FALSE(c.done());
  detail::instant const left = w.now;
  granted(w, c);
  CHECK(w.now - left == 100us);
  w.finish();
}

TEST_CASE("clients that want a lock all the time have it in turn") {
  for (std::uint64_t seed = 0; seed <= 20; ++seed) {
    CAPTURE(seed);
    constexpr std::size_t clients = 4;
    world w(streak_of(1), clients);
    w.any_order = seed;
    std::vector<task*> callers;  // two of each client
    for (std::uint64_t i = 0; i < 2 * clients; ++i) callers.push_back(&w.acquire(i + 1, {.client = i / 2}));
    std::vector<std::size_t> order;  // of clients
    for (int grants = 0; grants < 60; ++grants) {
      task** found = nullptr;
      w.until([&] {
        for (task*& one : callers)
          if (one->granted()) found = &one;
        return found != nullptr;
      });
      std::size_t const client = (*found)->client;
      if (order.empty() || order.back() != client) order.push_back(client);
      w.release(**found);
      *found = &w.acquire(static_cast<std::uint64_t>(found - callers.data()) + 1, {.client = client});
    }
    std::size_t out_of_turn = 0;  // until each has heard how many there are
    for (std::size_t i = clients; i < order.size(); ++i) out_of_turn += order[i] != order[i - clients];
    CHECK(order.size() == 30);
    CHECK(out_of_turn <= 5);
    for (task* one : callers) w.cancel(*one);
    w.run();
    for (task* one : callers)
      if (one->granted()) w.release(*one);
    w.finish();
  }
}

TEST_CASE("a client that takes a lock again at once leaves it to another after a while") {
  for (std::uint64_t seed = 0; seed <= 20; ++seed) {
    CAPTURE(seed);
    world w(streak_of(1'000, 3ms), 2);
    w.any_order = seed;
    task* one = &granted(w, w.acquire(1));
    task& other = w.run(w.acquire(2, {.client = 1}));
    int turns = 0;
    for (; !other.granted() && turns < 100; ++turns) {
      w.pass(1ms);
      w.await(w.release(*one));
      one = &w.acquire(1);
      w.until([&] { return one->granted() || other.granted(); });
    }
    CHECK(turns <= 3);
    REQUIRE(other.granted());
    w.release(other);
    w.await(*one);
    CHECK(one->granted());
    w.release(*one);
    w.finish();
  }
}

TEST_CASE("a spin lock that others wanted lately is left free for a while by who has had it for long") {
  world w(streak_of(1'000, 3ms), 2);
  how const spin{.which = &detail::spin_kind()};
  task& other = granted(w, w.acquire(2, {.client = 1, .which = &detail::spin_kind()}));
  task* one = &w.acquire(1, spin);
  w.run();
  w.release(other);
  w.await(*one);
  REQUIRE(one->granted());
  w.pass(10ms);
  w.await(w.release(*one));
  detail::instant const left = w.now;
  one = &w.acquire(1, spin);
  w.await(*one);
  CHECK(w.now - left == 3ms);
  w.pass(2s);  // nobody was heard of
  w.await(w.release(*one));
  detail::instant const alone = w.now;
  one = &w.acquire(1, spin);
  w.await(*one);
  CHECK(w.now == alone);
  w.release(*one);
  w.finish();
}

TEST_CASE("a lock that no other client wants is had again at once, however long") {
  world w(streak_of(1'000, 3ms), 2);
  task* one = &granted(w, w.acquire(1));
  for (int i = 0; i < 10; ++i) {
    task& another = w.acquire(2);  // of this client: it listens
    w.pass(2ms);
    w.await(w.release(*one));
    w.await(another);
    w.await(w.release(another));
    auto const asked = w.now;
    one = &granted(w, w.acquire(1));
    CHECK(w.now == asked);
  }
  w.release(*one);
  w.finish();
}

TEST_CASE("a streak also ends by time") {
  world w(streak_of(1'000, 10ms));
  task& first = w.await(w.acquire(1));
  std::vector<task*> all;
  for (std::uint64_t i = 2; i <= 6; ++i) all.push_back(&w.acquire(i));
  w.run();
  w.release(first);
  for (task* one : all) {
    w.await(*one);
    REQUIRE(one->granted());
    w.pass(6ms);
    w.release(*one);
  }
  w.run();
  CHECK(w.server.ran("(publish)") == 2);
  CHECK(w.snapshot().handed_off == 4);
  w.finish();
}

TEST_CASE("without hand-off every release is published") {
  world w({.local_handoff = {.max_streak = 0}});
  all_take_turns(w, 5);
  CHECK(w.snapshot().acquired == 5);
  CHECK(w.snapshot().handed_off == 0);
  CHECK(w.server.ran("(publish)") == 5);
  w.finish();
}

TEST_CASE("a hundred waiters cost one subscription, and about one command each") {
  world w;
  task& first = w.await(w.acquire(1'000));
  std::vector<task*> all;
  for (std::uint64_t i = 1; i <= 100; ++i) all.push_back(&w.acquire(i, {.direct = i % 2 == 0}));
  w.run();
  CHECK(w.server.subscriptions() == 1);
  std::size_t const before = w.server.ran("EVALSHA");
  w.pass(5s);
  CHECK(w.server.ran("EVALSHA") == before);
  w.release(first);
  for (task* one : all) {
    w.await(*one);
    REQUIRE(one->granted());
    w.run();  // the next one does not ask meanwhile
    w.release(*one);
  }
  w.run();
  CHECK(w.server.ran("EVALSHA") - before <= 110);
  CHECK(w.server.ran("SUBSCRIBE") == 1);
  w.finish();
}

TEST_CASE("a streak has ended, also when its release did not run the first time") {
  world w(streak_of(1, 1s));
  task& a = granted(w, w.acquire(1));
  task& b = w.run(w.acquire(2));
  w.release(a);
  w.await(b);
  CHECK(w.snapshot().handed_off == 1);
  task& c = w.run(w.acquire(3));
  w.server.flush_scripts();
  w.release(b);
  w.await(c);
  CHECK(w.snapshot().handed_off == 1);
  CHECK(w.server.ran("(publish)") == 1);
  w.finish();
}
