#include <support/catch.hpp>
#include <support/unit/stories.hpp>
#include <support/unit/sweep.hpp>

using namespace latchkey;
using namespace latchkey::test;
using namespace std::chrono_literals;

// Local turns: docs/safety.md, "Local turns". What is done without the server, what the server shows meanwhile, and
// when it is asked all the same.

namespace {

config turns_of(int length, milliseconds time) {
  config made = with_turns();
  made.local_handoff = {.max_streak = length, .max_time = time, .warm_up = 0};
  return made;
}

how of_turn(how options, milliseconds lease) {
  options.lease = lease;
  return options;
}

}  // namespace

TEST_CASE("turns: a release lets the next waiter of the client have it, and asks nobody") {
  for (how const& kind : kinds_with_turns()) {
    world w(with_turns());
    task& a = granted(w, w.acquire(1, kind));
    task& b = w.acquire(2, kind);
    task& c = w.run(w.acquire(3, kind));
    auto const before = asked(w);
    task& ended = w.release(a);
    CHECK(ended.done());
    CHECK(ended.released == release_result::released);
    CHECK(b.granted());
    w.drop(b);
    CHECK(c.granted());
    w.run();
    CHECK(asked(w) == before);
    CHECK(w.snapshot().handed_off == 2);
    w.finish();
    CHECK(w.server.all().empty());
  }
}

TEST_CASE("turns: who holds it takes it again and gives that back without the server") {
  world w(with_turns());
  task& outer = granted(w, w.acquire(1));
  auto const before = asked(w);
  task& inner = w.acquire(1, {.direct = true});
  CHECK(inner.granted());
  task& ended = w.release(inner);
  CHECK(ended.done());
  CHECK(ended.released == release_result::still_held);
  w.run();
  CHECK(asked(w) == before);
  w.pass(10ms);
  CHECK(asked(w) == before);  // the server shows what is
  CHECK(outer.granted());
  w.finish();
}

TEST_CASE("turns: an inner hold whose outer one has ended unnoticed is given back on the server") {
  world w(with_turns());
  granted(w, w.acquire(1, {.lease = 50ms}));
  task& inner = granted(w, w.acquire(1));
  auto const before = asked(w);
  w.now += 60ms;  // no timer was looked at
  w.run(w.release(inner));
  CHECK(asked(w) == before + 1);
  w.finish();
}

TEST_CASE("turns: a count that stays for a while is told to the server") {
  world w(with_turns());
  task& outer = granted(w, w.acquire(1));
  granted(w, w.acquire(1));
  granted(w, w.acquire(1));
  CHECK(w.server.count("k", w.field(1)) == 1);
  w.pass(5ms);
  CHECK(w.server.count("k", w.field(1)) == 3);
  CHECK(w.server.ttl("k") >= 29'990);
  w.release(outer);
  w.pass(5ms);
  CHECK(w.server.count("k", w.field(1)) == 2);
  w.finish();
}

TEST_CASE("turns: a turn that lasts is looked after, and one that has nothing is told") {
  for (how const& kind : kinds_with_turns()) {
    world w(with_turns());
    w.watch_holds = false;
    task& a = granted(w, w.acquire(1, kind));
    task& b = w.run(w.acquire(2, kind));
    w.drop(a);
    CHECK(b.granted());
    w.server.remove("k");
    w.pass(5ms);
    CHECK(b.losses == 1);
    CHECK(b.why_lost == errc::lease_lost);
    w.finish();
  }
}

TEST_CASE("turns: a question after a turn that is refused is asked again after pauses") {
  for (how const& kind : kinds_with_turns()) {
    INFO(kind.which->rules().name);
    world w(with_turns());
    task& a = granted(w, w.acquire(1, kind));
    task& b = w.acquire(2, kind);
    task& c = w.run(w.acquire(3, kind));
    w.drop(a);
    CHECK(b.granted());
    w.server.refuse("EVALSHA", "NOAUTH Authentication required.", 40);
    auto const before = asked(w);
    w.pass(1s);
    CHECK(asked(w) > before);
    CHECK(asked(w) < before + 20);
    CHECK_FALSE(c.done());
    task& tried = w.once(4, kind);
    w.pass(10s);
    CHECK(tried.done());
    CHECK_FALSE(tried.granted());
    w.drop(b);
    w.pass(60s);
    w.await(c);
    w.finish();
  }
}

TEST_CASE("turns: a streak ends by number and by time, and then the lock is really released") {
  for (how const& kind : kinds_with_turns())
    for (bool const by_time : {false, true}) {
      INFO(kind.which->rules().name << (by_time ? " by time" : " by number"));
      world w(turns_of(by_time ? 1'000 : 2, by_time ? 3ms : 60'000ms));
      task& a = granted(w, w.acquire(1, kind));
      std::vector<task*> others;
      for (std::uint64_t i = 2; i <= 4; ++i) others.push_back(&w.acquire(i, kind));
      w.run();
      if (by_time) w.pass(3ms);
      w.drop(a);
      if (!by_time) {
        CHECK(others[0]->granted());
        w.drop(*others[0]);
        CHECK(others[1]->granted());
        w.drop(*others[1]);
      }
      task& next = by_time ? *others[0] : *others[2];
      CHECK_FALSE(next.granted());
      w.await(next);
      w.finish();
    }
}

TEST_CASE("turns: who leaves the lock to others, and is then refused by the server, has not seen it busy") {
  for (config const& settings : {with_turns(), seen_by_the_server()})
    for (char const* words : {"OOM command not allowed when used memory > 'maxmemory'.", "LOADING Redis is loading"})
      for (how kind : kinds_with_turns()) {
        INFO(kind.which->rules().name << (settings.local_turns ? " with turns: " : ": ") << words);
        world w(settings);
        task& a = granted(w, w.acquire(1, kind));
        auto const before = asked(w);
        task& released = w.release(a);
        w.until([&] { return asked(w) > before; });
        REQUIRE_FALSE(released.done());
        for (char const* call : {"EVALSHA", "EVAL "}) w.server.refuse(call, words, -1);
        kind.wait = 500ms;
        CHECK(w.await(w.acquire(2, kind)).error == errc::timeout);
        w.server.accept_all();
        w.finish();
      }
}

TEST_CASE("turns: a spin lock that one holds for longer than a streak is then left to others, too") {
  how const spin{.which = &detail::spin_kind()};
  world w(with_turns());
  task& a = granted(w, w.acquire(1, spin));
  task& b = w.run(w.acquire(2, spin));
  w.pass(8ms);
  w.run(w.release(a));
  CHECK_FALSE(b.done());
  detail::instant const left = w.now;
  w.await(b);
  CHECK(w.now - left >= 3ms);
  w.finish();
}

TEST_CASE("turns: a lock that was dropped and is taken again before anything was sent is not released") {
  for (std::uint64_t const next : {std::uint64_t{1}, std::uint64_t{2}}) {
    world w(with_turns());
    task& a = granted(w, w.acquire(1));
    auto const before = asked(w);
    w.drop(a);
    CHECK(w.acquire(next).granted());
    w.run();
    CHECK(asked(w) == before);
    w.finish();
  }
}

TEST_CASE("turns: every hold's end is told") {
  for (std::uint64_t const next : {std::uint64_t{1}, std::uint64_t{2}})
    for (bool const waits : {false, true}) {
      world w(with_turns());
      task& a = granted(w, w.acquire(1));
      task* const b = waits ? &w.run(w.acquire(3)) : nullptr;
      w.drop(a);
      task& c = w.acquire(next);
      if (b) w.drop(w.await(*b));
      w.release(w.await(c));
      w.run();
      CHECK(w.noted(event_type::granted) == (waits ? 3 : 2));
      CHECK(w.noted(event_type::released) == w.noted(event_type::granted));
      w.finish();
    }
}

TEST_CASE("turns: who drops it and takes it again over and over releases it at the end of a streak") {
  for (int const run : {0, 1, 2, 3}) {
    bool const changes = run % 2 == 1;
    config settings = turns_of(10, 60'000ms);
    settings.local_handoff.warm_up = run < 2 ? 0 : 5;  // the first retakes ask the server
    world w(settings, 2);
    task* held = &granted(w, w.acquire(1));
    task& other = w.run(w.acquire(9, {.client = 1}));
    int turns = 0;
    while (!other.granted() && turns < 100) {
      w.drop(*held);
      held = &w.acquire(changes ? 1 + static_cast<std::uint64_t>(turns) % 2 : 1);
      if (!held->granted()) w.run();
      ++turns;
      if (!held->granted()) break;
    }
    CHECK(turns <= 12);
    w.await(other);
    w.release(other);
    w.await(*held);
    w.finish();
  }
}

TEST_CASE("turns: where nobody waits, or whose lease does not fit, the lock is released") {
  for (bool const waits : {false, true}) {
    world w(with_turns());
    task& a = granted(w, w.acquire(1, {.lease = 1s}));
    task* const b = waits ? &w.run(w.acquire(2, {.lease = 5s})) : nullptr;
    w.run(w.drop(a));
    CHECK_FALSE(w.server.exists("k"));
    if (b) CHECK(w.await(*b).granted());
    w.finish();
  }
}

TEST_CASE("turns: what is granted to nobody is given back") {
  world w(with_turns());
  warm_up(w);
  w.mute(role::shared);
  task& a = w.run(w.acquire(1));
  task& b = w.acquire(2);
  w.run(w.cancel(a));
  w.mute(role::shared, false);
  w.await(b);
  CHECK(w.snapshot().given_back == 1);
  CHECK(w.server.has("k", w.field(2)));
  w.finish();
  CHECK(w.server.all().empty());
}

TEST_CASE("turns: a release that was not answered goes again behind its KILL, and ends nobody's new hold") {
  for (std::uint64_t const next : {std::uint64_t{1}, std::uint64_t{2}})
    for (bool const killed : {false, true}) {
      world w(turns_of(10'000, 60'000ms));
      task& a = granted(w, w.acquire(1));
      leave_unread(w, role::shared, [&] { w.drop(a); });
      if (killed) w.until([&] { return w.snapshot().kills == 1; });
      task& after = w.acquire(next);
      CHECK_FALSE(after.done());
      w.await(after);
      w.server.run_left_behind();
      CHECK(w.server.count("k", w.field(next)) == 1);
      w.finish();
    }
}

TEST_CASE("turns: after a turn the owner whose field it is waits like everybody") {
  world w(with_turns());
  task& b = second_by_turn(w);
  CHECK(w.server.has("k", w.field(1)));
  CHECK(w.run(w.once(1)).busy());
  task& again = w.run(w.acquire(1, {.direct = true}));
  CHECK_FALSE(again.done());
  CHECK(b.losses == 0);
  w.pass(10ms);
  CHECK(w.run(w.once(1)).busy());
  w.release(b);
  granted(w, again);
  w.finish();
}

TEST_CASE("turns: a release that has left is followed by an answer before anybody of the client has a turn") {
  world w(with_turns());
  task& a = granted(w, w.acquire(1));
  w.deafen(role::shared);
  task& ended = w.run(w.release(a));
  task& again = w.acquire(1);
  task& b = w.run(w.acquire(2));
  CHECK_FALSE((again.done() || b.done() || ended.done()));
  w.deafen(role::shared, false);
  w.await(ended);
  CHECK(ended.released == release_result::released);
  w.await(b);
  w.release(b);
  w.await(again);
  w.finish();
}

TEST_CASE("turns: a streak counts from the first sending of its acquire") {
  for (bool const repeated : {false, true}) {
    CAPTURE(repeated);
    world w(with_turns());
    warm_up(w);
    w.mute(role::shared);
    task& a = w.acquire(1);
    task& b = w.acquire(2);
    w.pass(3ms);
    if (repeated)
      w.lose(role::shared, fate::gone);
    else
      w.mute(role::shared, false);
    granted(w, a);
    w.run();
    w.drop(a);
    CHECK_FALSE(b.granted());
    w.await(b);
    w.finish();
  }
}

TEST_CASE("turns: a turn ends with what the server was asked for, whenever it answered") {
  world w(with_turns());
  warm_up(w);
  detail::instant const sent = w.now;
  w.mute(role::shared);
  task& a = w.acquire(1);
  task& b = w.acquire(2);
  w.pass(2ms);
  w.mute(role::shared, false);
  w.await(a);
  w.drop(a);
  CHECK(b.granted());
  CHECK(b.shown.until() == sent + 30s);
  w.finish();
}

TEST_CASE("turns: a turn ends with what a confirmation asked for, whenever that was answered") {
  world w(turns_of(10'000, 60'000ms));
  task& a = granted(w, w.acquire(1));
  task& b = w.run(w.acquire(2));
  task& inner = granted(w, w.acquire(1));
  w.mute(role::shared);
  w.pass(5ms);
  detail::instant const sent = w.now;
  w.pass(100ms);
  w.mute(role::shared, false).run();
  CHECK(w.server.count("k", w.field(1)) == 2);
  w.drop(inner).drop(a);
  CHECK(b.granted());
  CHECK(b.shown.until() == sent + 30s);
  w.finish();
}

TEST_CASE("turns: in what its holder has lost nobody has a turn") {
  world w(turns_of(10'000, 60'000ms));
  w.watch_holds = false;
  task& a = granted(w, w.acquire(1));
  w.server.remove("k");
  w.until([&] { return a.losses == 1; });
  task& b = w.acquire(2);
  CHECK_FALSE(b.done());
  w.await(b);
  CHECK(w.server.has("k", w.field(2)));
  w.finish();
}

TEST_CASE("turns: an owner whose field is lent has the name in no other kind") {
  world w(with_turns());
  task& b = second_by_turn(w);
  task& other = w.run(w.acquire(1, {.which = &detail::non_reentrant_kind()}));
  CHECK(other.error == errc::bad_argument);
  w.run(w.release(b));
  task& again = granted(w, w.acquire(1, {.which = &detail::non_reentrant_kind()}));
  w.release(again);
  w.finish();
}

TEST_CASE("turns: a client that ends has no more of them, and releases what it has") {
  world w(with_turns());
  task& b = second_by_turn(w);
  task& c = w.run(w.acquire(3));
  w.close().run();
  CHECK(c.error == errc::closed);
  CHECK(b.why_lost == errc::closed);
  task& inner = w.acquire(2);
  CHECK(inner.error == errc::closed);
  w.run(w.release(b));
  CHECK(w.server.all().empty());
}

TEST_CASE("turns: who closes the client gives back what no lease shows, whoever's field it is") {
  world w(with_turns());
  task& a = granted(w, w.acquire(1, {.leased = false}));
  task& b = w.run(w.acquire(2, {.leased = false}));
  w.drop(a);
  REQUIRE(b.granted());
  w.close(0, 2).run();
  CHECK(w.server.all().empty());
}

TEST_CASE("turns: a fixed lease that fits is told by its own clock, and asks for the next one in turn") {
  world w(with_turns());
  task& a = granted(w, w.acquire(1, {.lease = 1s}));
  CHECK(w.server.ttl("k") == 1'000);
  task& b = w.run(w.acquire(2, {.lease = 500ms}));
  w.drop(a);
  CHECK(b.granted());
  CHECK(b.shown.until() == w.now + 500ms);
  w.pass(500ms);
  CHECK(b.losses == 1);
  w.run();
  CHECK(w.server.all().empty());
  w.finish();

  world equal(with_turns());
  equal.server.stranger_takes("k", "stranger:1", 5'000);
  task& first = equal.acquire(1, {.lease = 1s});
  task& next = equal.run(equal.acquire(2, {.lease = 1s}));
  equal.server.stranger_releases("k", "stranger:1");
  equal.await(first);
  CHECK(equal.server.ttl("k") == 1'003);
  CHECK(first.shown.until() == first.done_at + 1s);
  equal.drop(first);
  CHECK(next.granted());
  equal.finish();
}

TEST_CASE("turns: a lease that does not fit asks the server") {
  world w(with_turns());
  task& a = granted(w, w.acquire(1, {.lease = 1s}));
  auto const before = asked(w);
  task& b = w.run(w.acquire(2, {.lease = 2s}));
  w.drop(a);
  CHECK_FALSE(b.granted());
  w.await(b);
  CHECK(asked(w) > before);
  CHECK(w.server.ttl("k") >= 1'990);
  w.finish();
}

TEST_CASE("turns: nobody has a turn while a force-unlock is on its way, or after one was heard of") {
  world w(with_turns(), 2);
  task& a = granted(w, w.acquire(1));
  task& b = w.run(w.acquire(2));
  w.mute(role::shared);
  w.run(w.force_unlock());
  w.drop(a).run();
  CHECK_FALSE(b.granted());
  w.mute(role::shared, false);
  granted(w, b);
  w.finish();

  world heard(with_turns(), 2);
  heard.watch_holds = false;
  task& held = granted(heard, heard.acquire(1));
  task& next = heard.run(heard.acquire(2));
  task& other = heard.run(heard.acquire(9, {.client = 1}));
  heard.server.stranger_forces("k");
  heard.server.stranger_takes("k", "stranger:1", 5'000);
  heard.run();
  CHECK(held.losses == 1);
  heard.drop(held).run();
  CHECK_FALSE((next.granted() || other.granted()));
  heard.server.stranger_releases("k", "stranger:1");
  heard.finish();
}

TEST_CASE("turns: what is asked of an owner is answered for the one who has the turn") {
  world w(with_turns());
  task& b = second_by_turn(w);
  granted(w, w.acquire(2));
  auto const value = [&](detail::query what, std::uint64_t owner) {
    task& asked_for = w.await(w.ask(what, owner));
    return asked_for.value;
  };
  CHECK(value(detail::query::is_held_by, 2) == 1);
  CHECK(value(detail::query::hold_count, 2) == 2);
  CHECK(value(detail::query::is_held_by, 1) == 0);
  CHECK(value(detail::query::hold_count, 1) == 0);
  CHECK(value(detail::query::is_locked, 0) == 1);
  CHECK(b.granted());
  w.finish();
}

TEST_CASE("turns: what is asked while another one has the turn is answered so, also behind its end") {
  world w(with_turns());
  warm_up(w, true);
  warm_up(w, true);
  task& b = second_by_turn(w);
  w.mute(role::shared);
  task& held = w.run(w.ask(detail::query::is_held_by, 1));
  task& count = w.run(w.ask(detail::query::hold_count, 1));
  w.await(w.release(b, true));
  w.mute(role::shared, false);
  w.await(held, count);
  CHECK(held.value == 0);
  CHECK(count.value == 0);
  w.finish();
}

TEST_CASE("turns: switched off, the server sees every hold") {
  for (how const& kind : kinds_with_turns()) {
    world w;
    task& a = granted(w, w.acquire(1, kind));
    task& b = w.run(w.acquire(2, kind));
    auto const before = asked(w);
    w.drop(a);
    CHECK_FALSE(b.granted());
    w.await(b);
    CHECK(asked(w) > before);
    CHECK(w.server.ttl("k") == 30'000);
    w.finish();
  }
}

TEST_CASE("sweep: turns of three owners, with a re-entry") {
  for (how const& kind : kinds_with_turns())
    for (milliseconds const lease : {0ms, 20'000ms}) {
      INFO(kind.which->rules().name << ", lease " << lease.count());
      sweep({.play =
                 [&](world& w) {
                   bool const reenters =
                       kind.which->admit(0, std::array{1, 0}.data()) == detail::kind::admission::at_once;
                   how const how_to = of_turn(kind, lease);
                   task& a = w.acquire(1, how_to);
                   task& b = w.acquire(2, how_to);
                   task& c = w.acquire(3, how_to);
                   for (task* one : {&a, &b, &c}) {
                     w.await(*one);
                     w.expect(one->granted(), "each in turn");
                     if (one == &b && reenters && b.granted()) {
                       task& inner = w.await(w.acquire(2, how_to));
                       if (inner.granted()) w.release(inner);
                     }
                     if (one == &c) w.pass(8ms);
                     if (one->granted()) w.release(*one, one == &a);
                   }
                   w.await(w.once(1, how_to));
                 },
             .settings = [] { return with_turns(); }});
    }
}

TEST_CASE("sweep: turns that are dropped and taken, of two clients") {
  sweep({.play =
             [](world& w) {
               task* held = &w.acquire(1);
               w.await(*held);
               task& other = w.acquire(7, {.client = 1});
               for (std::uint64_t i = 0; i < 6; ++i) {
                 if (held->granted()) w.drop(*held);
                 held = &w.acquire(1 + i % 2);
                 w.until([&] {
                   if (other.granted() && !other.ended) w.drop(other);
                   return held->done();
                 });
                 if (i == 3) w.pass(6ms);
               }
               if (held->granted()) w.drop(*held);
               w.await(other);
             },
         .settings = [] { return turns_of(2, 3ms); },
         .clients = 2});
}
