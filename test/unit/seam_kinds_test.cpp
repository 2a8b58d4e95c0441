#include <support/catch.hpp>
#include <support/unit/made_kind.hpp>
#include <support/unit/stories.hpp>
#include <support/unit/sweep.hpp>

using namespace latchkey;
using namespace latchkey::test;
using namespace std::chrono_literals;

// Made-up kinds: what another kind may say without a change of the machines.

namespace {

made_kind const& permits() {
  static made_kind const the_one({.name = "permits", .exclusive = false, .hand_off = false, .grant_wakes_next = true},
                                 three_holders());
  return the_one;
}

made_kind const& plain() {
  static made_kind const the_one({.name = "plain", .hand_off = false});
  return the_one;
}

made_kind const& polling() {
  static made_kind const the_one(
      {.name = "polling", .hand_off = false, .listens = false, .polls = true, .poll_first = 50, .poll_most = 400});
  return the_one;
}

// Told of releases by its own clients, but others that use the key tell nobody.
made_kind const& both() {
  static made_kind const the_one({.name = "both", .polls = true, .poll_first = 50, .poll_most = 400});
  return the_one;
}

made_kind const& read_write() {
  static made_kind const the_one(
      {.name = "read_write", .exclusive = false, .hand_off = false, .grant_wakes_next = true, .modes = 2}, two_sides());
  return the_one;
}

constexpr std::size_t three = 3;

}  // namespace

TEST_CASE("seam: after a grant the next waiter tries at once") {
  world w;
  w.exclusive = false;
  for (char const* field : {"stranger:1", "stranger:2", "stranger:3"}) w.server.set("k", field, 1);
  w.server.expire("k", 600'000);
  std::vector<task*> all;
  for (std::uint64_t i = 1; i <= 5; ++i) all.push_back(&w.acquire(i, {.which = &permits()}));
  w.run();
  w.server.remove("k");
  w.server.publish("made:k", "0");  // one message for three places
  w.run();
  for (std::size_t i = 0; i < 5; ++i) CHECK(all[i]->granted() == (i < three));
  w.run(w.release(*all[0]));
  CHECK(all[3]->granted());
  CHECK_FALSE(all[4]->done());
  w.finish();
}

TEST_CASE("sweep: seam: more callers than places") {
  sweep({.play = [](world& w) {
    w.exclusive = false;
    std::vector<task*> all;
    for (std::uint64_t i = 1; i <= 5; ++i) all.push_back(&w.acquire(i, {.which = &permits()}));
    for (task* one : all) {
      w.await(*one);
      w.expect(one->granted(), "everybody gets a place");
      if (one->granted()) w.release(*one);
    }
  }});
}

TEST_CASE("seam: a kind without hand-off is really released") {
  world w;
  task& a = granted(w, w.acquire(1, {.which = &plain()}));
  task& b = w.run(w.acquire(2, {.which = &plain()}));
  w.run(w.release(a));
  CHECK(b.granted());
  w.drop(b);
  CHECK(w.run(w.once(3, {.which = &plain()})).granted());
  CHECK(w.server.ran("EVALSHA made_hand_off") == 0);
  CHECK(w.snapshot().handed_off == 0);
  w.finish();
}

TEST_CASE("sweep: seam: a kind without hand-off") {
  sweep({.play = [](world& w) {
    task& a = w.acquire(1, {.which = &plain()});
    task& b = w.acquire(2, {.which = &plain()});
    w.await(a);
    if (a.granted()) w.release(a);
    w.await(b);
    w.expect(b.granted(), "granted");
    if (b.granted()) w.drop(b);
    w.await(w.acquire(3, {.direct = true, .which = &plain()}));
  }});
}

TEST_CASE("seam: two sides of a lock share the state of an owner") {
  world w;
  w.exclusive = false;
  how const read{.which = &read_write(), .mode = 0}, write{.which = &read_write(), .mode = 1};
  task& writer = granted(w, w.acquire(1, write));
  task& reader = granted(w, w.acquire(1, read));  // who writes may read, too
  CHECK(w.server.all() == std::set<std::string>{"k/clientA:1:write=1", "k/clientA:1=1"});
  task& other = w.run(w.acquire(2, read));
  CHECK_FALSE(other.done());
  w.await(w.release(writer));
  w.run();
  CHECK(other.granted());
  CHECK(reader.trusted(w.now));
  CHECK(w.run(w.acquire(1, write)).error == errc::would_deadlock);
  w.pass(25s);  // both sides are renewed
  CHECK(w.server.ttl("k") > 20'000);
  CHECK(reader.losses + other.losses == 0);
  w.finish();
}

TEST_CASE("sweep: seam: a writer and two readers") {
  sweep({.play = [](world& w) {
    w.exclusive = false;
    task& writer = w.await(w.acquire(1, {.which = &read_write(), .mode = 1}));
    task& a = w.acquire(2, {.which = &read_write()});
    task& b = w.acquire(3, {.which = &read_write()});
    task& second = w.run(w.acquire(4, {.which = &read_write(), .mode = 1}));
    w.expect(!a.done() && !b.done() && !second.done(), "the writer keeps all out");
    if (writer.granted()) w.release(writer);
    w.await(a, b);
    w.expect(a.granted() && b.granted() && !second.done(), "both read");
    for (task* one : {&a, &b})
      if (one->granted()) w.release(*one);
    w.await(second);
    w.expect(second.granted(), "then the second writer");
  }});
}

TEST_CASE("seam: a kind that only polls") {
  world w;
  w.server.stranger_takes("k", "stranger:1", 600'000);
  task& a = w.acquire(1, {.which = &polling()});
  task& b = w.run(w.acquire(2, {.which = &polling()}));
  CHECK(w.server.ran("SUBSCRIBE") == 0);
  std::size_t const first = w.server.ran("EVALSHA made_acquire");
  CHECK(first == 1);
  w.pass(100ms);
  CHECK(w.server.ran("EVALSHA made_acquire") >= 2);
  w.pass(10s);
  std::size_t const tries = w.server.ran("EVALSHA made_acquire");
  CHECK(tries <= 60);  // the pauses have grown
  CHECK(tries >= 20);
  w.server.remove("k");
  w.pass(401ms);
  CHECK(a.granted());
  w.release(a);
  w.pass(401ms);
  CHECK(b.granted());
  w.finish();
}

TEST_CASE("sweep: seam: a kind that only polls") {
  sweep({.play = [](world& w) {
    task& a = w.await(w.acquire(1, {.which = &polling()}));
    task& b = w.acquire(2, {.direct = true, .which = &polling()});
    task& c = w.await(w.acquire(3, {.wait = 300ms, .which = &polling()}));
    if (a.granted()) w.release(a);
    w.await(b);
    w.expect(b.granted() && !c.granted(), "the one who still waits");
  }});
}

TEST_CASE("seam: the pauses of a kind that polls double from the first to the longest") {
  world w;
  w.server.stranger_takes("k", "stranger:1", 600'000);
  task& a = w.run(w.acquire(1, {.which = &polling()}));
  std::size_t tries = w.server.ran("EVALSHA made_acquire");
  for (std::int64_t const longest : {50, 100, 200, 400, 400, 400}) {
    auto const began = w.now;
    while (w.server.ran("EVALSHA made_acquire") == tries) w.pass(1ms);
    auto const paused = std::chrono::duration_cast<milliseconds>(w.now - began).count();
    CHECK(paused >= longest / 2);
    CHECK(paused <= longest + 2);
    tries = w.server.ran("EVALSHA made_acquire");
  }
  w.cancel(a);
  w.server.remove("k");
  w.finish();
}

TEST_CASE("seam: who only polls asks nothing at once behind a caller of this client, and then as behind others") {
  world w;
  task& a = granted(w, w.acquire(1, {.which = &polling()}));
  task& b = w.run(w.acquire(2, {.which = &polling()}));
  CHECK(w.server.ran("EVALSHA made_acquire") == 1);
  w.pass(60ms);
  CHECK(w.server.ran("EVALSHA made_acquire") == 2);
  w.server.remove("k");  // somebody took the hold away and told nobody
  w.watch_holds = false;
  w.pass(110ms);
  CHECK(b.granted());
  CHECK(a.losses == 1);
  w.finish();
}

TEST_CASE("seam: a release that nobody hears of gives others a moment, and then the head looks") {
  world w;
  task& a = granted(w, w.acquire(1, {.which = &polling()}));
  task& b = w.acquire(2, {.which = &polling()});
  w.pass(5s);  // by now it looks every 200 to 400 ms
  w.await(w.release(a));
  CHECK_FALSE(b.done());
  CHECK(w.server.stranger_takes("k", "stranger:1", 600'000));
  w.pass(10s);
  w.server.remove("k");
  w.pass(401ms);
  CHECK(b.granted());
  task& c = w.acquire(3, {.which = &polling()});
  w.pass(5s);
  w.release(b);
  w.pass(52ms);
  CHECK(c.granted());
  w.finish();
}

TEST_CASE("seam: a kind that listens and polls is told at once, and finds out what nobody tells") {
  world w;
  w.server.stranger_takes("k", "stranger:1", 600'000);
  task& a = w.acquire(1, {.which = &both()});
  w.pass(5s);
  CHECK((w.server.ran("SUBSCRIBE made:k") == 1 && w.server.subscriptions() == 1));
  w.server.remove("k");
  w.pass(401ms);
  CHECK(a.granted());
  w.run(w.release(a));
  w.server.stranger_takes("k", "stranger:1", 600'000);
  task& b = w.acquire(2, {.which = &both()});
  w.pass(5s);
  CHECK_FALSE(b.done());
  w.server.remove("k");
  w.server.publish("made:k", "0");
  w.run();
  CHECK(b.granted());
  w.finish();
}

TEST_CASE("sweep: seam: a kind that listens and polls") {
  sweep({.play = [](world& w) {
    w.server.stranger_takes("k", "stranger:1", 400);
    task& a = w.await(w.acquire(1, {.which = &both()}));
    task& b = w.acquire(2, {.direct = true, .which = &both()});
    task& c = w.await(w.acquire(3, {.wait = 300ms, .which = &both()}));
    if (a.granted()) w.release(a);
    w.await(b);
    w.expect(b.granted() && !c.granted(), "the one who still waits");
  }});
}
