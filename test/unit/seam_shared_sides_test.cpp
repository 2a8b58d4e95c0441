#include <support/catch.hpp>
#include <support/unit/made_kind.hpp>
#include <support/unit/stories.hpp>
#include <support/unit/sweep.hpp>

using namespace latchkey;
using namespace latchkey::test;
using namespace std::chrono_literals;

// A made-up exclusive kind with two sides, of which several owners hold the first (0) at once and one the second (1).

namespace {

made_kind const& sides() {
  static made_kind const the_one({.name = "sides", .hand_off = false, .modes = 2, .shared_modes = 1}, two_sides());
  return the_one;
}

how shared(milliseconds wait = -1ms, std::size_t client = 0) {
  return {.wait = wait, .client = client, .which = &sides(), .mode = 0};
}
how alone(milliseconds wait = -1ms, std::size_t client = 0) {
  return {.wait = wait, .client = client, .which = &sides(), .mode = 1};
}

struct sides_world : world {
  explicit sides_world(std::size_t clients = 1, config given = {}) : world(std::move(given), clients) {}
  std::size_t tries() const { return server.ran("EVALSHA made_acquire"); }
  // Somebody of another client, who listens to nobody.
  void stranger_takes(bool the_shared_side = false) {
    server.set("k", the_shared_side ? "stranger:1" : "stranger:1:write", 1);
    server.expire("k", 600'000);
  }
  void stranger_leaves() {
    server.remove("k");
    server.publish("made:k", "0");
  }
};

}  // namespace

TEST_CASE("seam: who shares gets in beside, and sleeps behind who does not") {
  sides_world w;
  task& a = granted(w, w.acquire(1, shared()));
  task& b = granted(w, w.acquire(2, shared()));
  std::size_t const before = w.tries();
  task& c = w.run(w.acquire(3, alone()));
  CHECK_FALSE(c.done());
  CHECK(w.tries() <= before + 1);  // the holders are of this client: only the confirmation makes it ask
  w.run(w.release(a));
  CHECK_FALSE(c.done());
  w.run(w.release(b));
  CHECK(c.granted());
  CHECK(a.losses + b.losses == 0);
  w.finish();
}

TEST_CASE("seam: the first of a run that is let in takes the run along, in one call") {
  sides_world w;
  w.stranger_takes();
  std::vector<task*> run;
  for (std::uint64_t i = 1; i <= 6; ++i) run.push_back(&w.acquire(i, shared()));
  w.run();
  w.server.remove("k");  // nobody is told: the hint of the head finds it
  std::size_t const before = w.tries();
  w.pass(30'002ms);
  for (task* one : run) CHECK(one->granted());
  CHECK(w.tries() == before + 2);
  w.finish();
}

TEST_CASE("seam: a message lets the whole run in with one call, up to the first who shares not") {
  sides_world w;
  w.stranger_takes();
  task& a = w.run(w.acquire(1, shared()));
  task& b = w.acquire(2, shared());
  task& writer = w.acquire(3, alone());
  task& behind = w.run(w.acquire(4, shared()));
  std::size_t const before = w.tries();
  w.stranger_leaves();
  w.run();
  CHECK((a.granted() && b.granted()));
  CHECK_FALSE((writer.done() || behind.done()));
  CHECK(w.tries() == before + 1);
  w.release(a);
  w.run(w.release(b));
  CHECK((writer.granted() && !behind.done()));
  w.run(w.release(writer));
  CHECK(behind.granted());
  w.finish();
}

TEST_CASE("seam: callers of a shared side that come together try together") {
  sides_world w;
  granted(w, w.acquire(9, {.name = "warm"}));
  std::vector<task*> all;
  for (std::uint64_t i = 1; i <= 20; ++i) all.push_back(&w.acquire(i, shared()));
  w.run();
  for (task* one : all) CHECK(one->granted());
  CHECK(w.tries() == 1);
  w.finish();
}

TEST_CASE("seam: a stream of sharers does not pass a waiter who would be alone") {
  sides_world w;
  task* held = &granted(w, w.acquire(1, shared()));
  task& writer = w.run(w.acquire(2, alone()));
  for (std::uint64_t i = 3; i < 20; ++i) {
    task& next = w.acquire(i, shared(10ms));
    w.pass(20ms);
    CHECK(next.busy());
  }
  how again = shared();
  again.leased = false;
  CHECK(granted(w, w.acquire(1, again)).granted());  // who holds it need not queue
  w.unlock(1, again);
  w.run(w.release(*held));
  CHECK(writer.granted());
  w.finish();
}

TEST_CASE("seam: when a waiter gives up who would be alone, those behind it get in") {
  sides_world w;
  granted(w, w.acquire(1, shared()));
  task& writer = w.run(w.acquire(2, alone()));
  task& a = w.acquire(3, shared());
  task& b = w.run(w.acquire(4, shared()));
  CHECK_FALSE((a.done() || b.done()));
  w.cancel(writer).run();
  CHECK((a.granted() && b.granted()));
  w.finish();
}

TEST_CASE("seam: a one-shot of a shared side is one real attempt, unless somebody waits before it") {
  sides_world w(2);
  task& theirs = granted(w, w.acquire(1, shared(-1ms, 1)));
  w.mute(role::shared);
  task& refused = w.once(2, alone());
  task& fine = w.once(3, shared());  // comes before the other one is answered
  w.run();
  w.mute(role::shared, false).run();
  CHECK(refused.busy());
  CHECK(fine.granted());
  task& writer = w.run(w.acquire(4, alone()));
  CHECK(w.run(w.once(5, shared())).busy());
  w.release(fine);
  w.run(w.release(theirs));
  CHECK(writer.granted());
  w.finish();
}

TEST_CASE("seam: a grant ends the holds that keep it out, and no others") {
  sides_world w;
  w.watch_holds = false;
  task& a = granted(w, w.acquire(1, shared()));
  task& b = granted(w, w.acquire(2, shared()));
  CHECK(a.losses == 0);
  w.server.remove("k");  // the server loses its data
  w.server.publish("made:k", "0");
  task& c = granted(w, w.once(3, shared()));
  CHECK(a.losses + b.losses == 0);  // that proves nothing of them
  w.server.remove("k");
  task& d = granted(w, w.once(4, alone()));
  CHECK((a.losses == 1 && b.losses == 1 && c.losses == 1));
  w.server.remove("k");
  granted(w, w.once(5, shared()));
  CHECK(d.losses == 1);
  w.finish();
}

TEST_CASE("seam: a waiter whose owner is granted the other side is admitted anew") {
  sides_world w;
  w.stranger_takes();
  task& reads = w.run(w.acquire(1, shared()));
  task& writes = w.acquire(1, alone());
  task& other = w.run(w.acquire(2, alone()));
  w.stranger_leaves();
  w.run();
  CHECK(reads.granted());
  CHECK(writes.error == errc::would_deadlock);
  task& more = w.run(w.acquire(2, shared()));
  CHECK_FALSE((other.done() || more.done()));
  w.run(w.release(reads));
  CHECK((other.granted() && more.granted()));
  w.finish();
}

TEST_CASE("seam: what ends on one side while the other side has a request under way is given back") {
  sides_world w;
  task& writes = granted(w, w.acquire(1, alone()));
  how brief = shared();
  brief.lease = 500ms;
  task& reads = granted(w, w.acquire(1, brief));
  w.mute(role::shared);
  task& again = w.acquire(1, alone());
  w.pass(600ms);
  CHECK(reads.losses == 1);
  w.mute(role::shared, false).run();
  CHECK(again.granted());
  CHECK(w.server.all() == std::set<std::string>{"k/clientA:1:write=2"});
  CHECK(writes.trusted(w.now));
  w.finish();
}

TEST_CASE("seam: the same while the request is still unsent, and when that is given up") {
  for (bool const gives_up : {false, true}) {
    sides_world w;
    granted(w, w.acquire(1, alone()));
    how brief = shared();
    brief.lease = 500ms;
    granted(w, w.acquire(1, brief));
    w.server.refuse("EVALSHA made_acquire", "LOADING Redis is loading the dataset in memory", -1);
    task& again = w.acquire(1, alone());
    w.pass(600ms);
    CHECK_FALSE(again.done());
    if (gives_up) w.cancel(again);
    w.server.accept_all();
    w.pass(5s);
    CHECK(again.granted() == !gives_up);
    CHECK(w.server.all() == std::set<std::string>{"k/clientA:1:write=" + std::string(gives_up ? "1" : "2")});
    w.finish();
  }
}

TEST_CASE("seam: a re-entry that queues anew gives back what its earlier copy was granted") {
  sides_world w;
  task& writes = granted(w, w.acquire(1, alone()));
  task& reads = *leave_unanswered(w, role::shared, [&] { return &w.acquire(1, shared()); });
  w.server.refuse("EVALSHA made_acquire", "LOADING Redis is loading the dataset in memory", -1);
  w.run();
  CHECK(w.server.all().size() == 2);
  w.drop(writes).run();
  w.cancel(reads);
  w.server.accept_all();
  w.pass(5s);
  CHECK(w.server.all().empty());
  w.finish();
}

TEST_CASE("seam: dropped shared holds keep no sharer waiting") {
  sides_world w;
  task& a = granted(w, w.acquire(1, shared()));
  granted(w, w.acquire(2, shared()));
  w.mute(role::shared);
  w.drop(a).run();
  std::size_t const before = w.tries();
  task& c = w.run(w.acquire(3, shared()));
  CHECK(w.tries() == before + 1);
  w.mute(role::shared, false).run();
  CHECK(c.granted());
  w.finish();
}

TEST_CASE("sweep: seam: sides of two clients") {
  sweep({.play =
             [](world& w) {
               task& writer = w.await(w.acquire(1, alone()));
               task& a = w.acquire(2, shared());
               task& b = w.acquire(3, shared(-1ms, 1));
               task& c = w.acquire(4, shared());
               task& second = w.acquire(5, alone(-1ms, 1));
               task& d = w.run(w.acquire(6, shared(-1ms, 1)));
               if (writer.granted()) w.release(writer);
               w.await(a, b, c);
               w.expect(a.granted() && b.granted() && c.granted(), "readers of both clients");
               for (task* one : {&a, &b, &c})
                 if (one->granted()) w.release(*one);
               w.await(second);
               w.expect(second.granted(), "then who is alone");
               if (second.granted()) w.drop(second);
               w.await(d);
               w.expect(d.granted(), "and who stood behind it");
             },
         .clients = 2});
}

TEST_CASE("seam: who shares keeps out who does not, and behind such a waiter everybody") {
  sides_world w;
  auto const keeps_out = [&](unsigned char mode) { return w.machine().keeps_out(sides(), "k", 1, mode); };
  task& held = granted(w, w.acquire(1, shared()));
  CHECK_FALSE(keeps_out(0));
  CHECK(keeps_out(1));
  task& waits = w.run(w.acquire(2, alone()));
  CHECK(keeps_out(0));
  w.run(w.release(held));
  CHECK(waits.granted());
  CHECK_FALSE(keeps_out(0));
  w.release(waits);
  task& writer = granted(w, w.acquire(1, alone()));
  CHECK((keeps_out(0) && keeps_out(1)));
  w.release(writer);
  w.finish();
}
