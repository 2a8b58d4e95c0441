#include <support/catch.hpp>
#include <support/unit/stories.hpp>
#include <support/unit/sweep.hpp>
#include <wire/kinds.hpp>

namespace machine_write_turns {

using namespace latchkey;
using namespace latchkey::test;
using namespace std::chrono_literals;

// Local turns of the write lock of a pair: docs/safety.md, "Local turns". Readers always ask the server.

namespace {

constexpr unsigned char read_mode = 0, write_mode = 1;

how in(unsigned char mode, milliseconds lease = 0ms, std::size_t client = 0) {
  return {.lease = lease, .client = client, .which = &detail::read_write_kind(), .mode = mode};
}
how const writing = in(write_mode), reading = in(read_mode);

// Of the number under which the server shows what an owner writes or reads.
struct write_world : world {
  explicit write_world(std::size_t clients = 1, config const& settings = with_turns()) : world(settings, clients) {}
  std::int64_t writes(std::uint64_t owner) { return server.count("k", field(owner) + ":write"); }
  std::int64_t reads(std::uint64_t owner) { return server.count("k", field(owner)); }
  std::int64_t stamp(std::uint64_t owner, int i) {
    return server.ttl("{k}:" + field(owner) + ":rwlock_timeout:" + std::to_string(i));
  }
  std::string mode() { return server.ask({"HGET", "k", "mode"}).text; }
  // The first one writes, and then the second one, who stands in the field of the first.
  task& turn_of_second() {
    task& a = granted(*this, acquire(1, writing));
    task& b = run(acquire(2, writing));
    drop(a);
    CHECK(b.granted());
    CHECK((writes(1) == 1 && writes(2) == 0));
    return b;
  }
};

// One has it as soon as the other gives it up, and the server is asked nothing.
bool passes_on(write_world& w, task& from, task& to) {
  auto const before = asked(w);
  w.drop(from);
  bool const at_once = to.granted();
  w.run();
  return at_once && asked(w) == before;
}

}  // namespace

TEST_CASE("write turns: a writer takes it again and gives that back without the server, which is told later") {
  write_world w;
  task& outer = granted(w, w.acquire(1, writing));
  auto const before = asked(w);
  task& inner = w.acquire(1, writing);
  CHECK(inner.granted());
  CHECK(w.release(inner).released == release_result::still_held);
  w.pass(10ms);
  CHECK(asked(w) == before);
  granted(w, w.acquire(1, writing));
  w.pass(5ms);
  CHECK(asked(w) == before + 1);
  CHECK(w.writes(1) == 2);
  CHECK(w.server.ttl("k") >= 29'980);
  CHECK(w.mode() == "write");
  CHECK(outer.granted());
  w.finish();
}

TEST_CASE("write turns: a release lets the next writer of the client have it, and asks nobody") {
  write_world w;
  task& a = granted(w, w.acquire(1, writing));
  task& b = w.acquire(2, writing);
  task& c = w.run(w.acquire(3, writing));
  auto const before = asked(w);
  CHECK(w.release(a).released == release_result::released);
  CHECK(b.granted());
  w.drop(b);
  CHECK(c.granted());
  w.run();
  CHECK(asked(w) == before);
  w.pass(5ms);
  CHECK(asked(w) == before + 1);
  CHECK(w.writes(1) == 1);
  CHECK(w.mode() == "write");
  CHECK(w.snapshot().handed_off == 2);
  w.finish();
  CHECK(w.server.all().empty());
}

TEST_CASE("write turns: one that was dropped and is taken again before anything was sent is not released") {
  for (std::uint64_t const next : {std::uint64_t{1}, std::uint64_t{2}}) {
    write_world w;
    task& a = granted(w, w.acquire(1, writing));
    auto const before = asked(w);
    w.drop(a);
    CHECK(w.acquire(next, writing).granted());
    w.run();
    CHECK(asked(w) == before);
    w.finish();
  }
}

TEST_CASE("write turns: behind a reader who waits the lock is really released") {
  write_world w;
  task& a = granted(w, w.acquire(1, writing));
  task& b = w.acquire(2, reading);
  task& c = w.run(w.acquire(3, writing));
  auto const before = asked(w);
  w.release(a);
  CHECK_FALSE(b.granted());
  w.await(b);
  CHECK(asked(w) > before);
  CHECK((w.writes(1) == 0 && w.reads(2) == 1));
  CHECK(w.mode() == "read");
  CHECK_FALSE(c.granted());
  w.release(b);
  w.await(c);
  w.finish();
}

TEST_CASE("write turns: nobody has a turn behind a writer who also reads, or has asked to") {
  for (bool const answered : {true, false}) {
    CAPTURE(answered);
    write_world w(2);
    task& a = granted(w, w.acquire(1, writing));
    task& b = w.run(w.acquire(2, writing));
    task& theirs = w.run(w.acquire(3, in(read_mode, 0ms, 1)));
    if (!answered) w.deafen(role::shared);
    task& also = w.run(w.acquire(1, reading));
    CHECK(also.done() == answered);
    w.drop(a);
    CHECK_FALSE(b.granted());
    w.deafen(role::shared, false);
    w.await(also, theirs);
    CHECK((w.writes(1) == 0 && w.reads(1) == 1));
    CHECK(w.stamp(1, 1) > 0);
    CHECK_FALSE(b.granted());
    w.release(also);
    w.release(theirs);
    w.await(b);
    w.finish();
  }
}

TEST_CASE("write turns: a reader who writes takes that again, too, and keeps what it reads") {
  write_world w;
  task& a = granted(w, w.acquire(1, writing));
  task& also = granted(w, w.acquire(1, in(read_mode, 2s)));
  auto const before = asked(w);
  task& inner = w.acquire(1, writing);
  CHECK(inner.granted());
  w.release(inner);
  CHECK(asked(w) == before);
  w.release(also);
  w.run();
  CHECK((w.writes(1) == 1 && w.reads(1) == 0));
  task& b = w.run(w.acquire(2, writing));
  CHECK(passes_on(w, a, b));
  w.finish();
}

TEST_CASE("write turns: a read hold that ends beside it ends no turns") {
  config settings = with_turns();
  settings.local_handoff.max_time = 60s;
  write_world w(1, settings);
  task& a = granted(w, w.acquire(1, writing));
  task& also = granted(w, w.acquire(1, in(read_mode, 50ms)));
  w.pass(100ms);
  CHECK(also.losses == 1);
  task& b = w.run(w.acquire(2, writing));
  CHECK(passes_on(w, a, b));
  w.finish();
}

TEST_CASE("write turns: who has a turn reads in the field in which it writes, and has that as long as it reads") {
  write_world w;
  task& b = w.turn_of_second();
  task& also = granted(w, w.acquire(2, reading));
  CHECK((w.reads(1) == 1 && w.reads(2) == 0));
  w.run(w.release(b));
  CHECK((w.writes(1) == 0 && w.writes(2) == 0 && w.reads(1) == 1));
  CHECK(w.stamp(1, 1) > 0);
  task& a = w.run(w.acquire(1, writing));
  CHECK_FALSE(a.done());
  w.pass(100s);
  CHECK(also.trusted(w.now));
  w.run(w.release(also));
  w.await(a);
  CHECK((w.writes(1) == 1 && w.reads(1) == 0));
  CHECK(w.stamp(1, 1) == -2);
  w.finish();
}

TEST_CASE("write turns: an owner whose field another one reads in reads beside it") {
  write_world w;
  task& b = w.turn_of_second();
  task& also = granted(w, w.acquire(2, reading));
  task& a = w.run(w.acquire(1, reading));
  CHECK_FALSE(a.done());
  w.run(w.release(b));
  w.await(a);
  CHECK(w.reads(1) == 1);
  CHECK(w.server.ask({"HLEN", "k"}).integer == 3);
  task& more = granted(w, w.acquire(1, reading));
  auto const value = [&](detail::query what, std::uint64_t owner) {
    how const about = reading;
    return w.await(w.ask(what, owner, about)).value;
  };
  CHECK(value(detail::query::hold_count, 1) == 2);
  CHECK(value(detail::query::is_held_by, 2) == 1);
  w.run(w.release(also));
  CHECK(w.reads(1) == 0);
  w.pass(100s);
  CHECK((a.trusted(w.now) && more.trusted(w.now)));
  w.release(more);
  w.run(w.release(a));
  CHECK(w.server.all().empty());
  task& again = granted(w, w.acquire(1, writing));
  CHECK(w.writes(1) == 1);
  w.release(again);
  w.finish();
}

TEST_CASE("write turns: what is gone is told after a while, and at once if a message says so") {
  for (bool const heard : {false, true}) {
    CAPTURE(heard);
    write_world w;
    w.watch_holds = false;
    task& b = w.turn_of_second();
    task& c = w.run(w.acquire(3, writing));
    w.server.remove("k");
    if (heard) w.server.publish("redisson_rwlock:{k}", "1");
    heard ? w.run() : w.pass(5ms);
    CHECK(b.losses == 1);
    w.await(c);
    w.finish();
  }
}

TEST_CASE("write turns: what readers ask for and give back beside a streak neither waits for it nor ends it") {
  write_world w;
  task& r = granted(w, w.acquire(5, reading));
  task& a = w.acquire(1, writing);
  task& b = w.run(w.acquire(2, writing));
  CHECK_FALSE(a.done());
  w.release(r);
  w.await(a);
  CHECK(passes_on(w, a, b));
  w.finish();
}

TEST_CASE("write turns: a second read hold, too, keeps the field") {
  write_world w;
  task& first = granted(w, w.acquire(1, reading));
  task& a = w.acquire(2, writing);
  task& b = w.acquire(3, writing);
  task& one = w.acquire(3, in(read_mode, 3s));
  task& inner = w.run(w.acquire(3, writing));
  w.release(first);
  w.await(a);
  task& two = w.acquire(3, in(read_mode, 7s));
  w.drop(a);
  CHECK(b.granted());
  w.await(one, two, inner);
  w.pass(10ms);
  w.run(w.release(one));
  w.run(w.release(inner));
  w.run(w.release(b));
  CHECK(w.reads(2) == 1);
  task& again = granted(w, w.acquire(2, in(read_mode, 6s)));
  CHECK(w.server.ask({"HLEN", "k"}).integer == 3);
  w.run(w.release(again));
  CHECK(w.reads(2) == 1);
  w.finish();
}

TEST_CASE("sweep: turns of writers, one of whom also reads") {
  sweep({.play =
             [](world& w) {
               task& a = w.acquire(1, writing);
               task& b = w.acquire(2, writing);
               w.await(a);
               w.expect(a.granted(), "the first one");
               if (a.granted()) w.drop(a);
               w.await(b);
               w.expect(b.granted(), "has a turn");
               task& inner = w.await(w.acquire(2, writing));
               if (inner.granted()) w.release(inner);
               task& also = w.acquire(2, reading);
               task& first = w.acquire(1, reading);
               w.await(also);
               if (b.granted()) w.release(b);
               w.await(first);
               w.expect(first.granted(), "beside the one who has its field");
               task& c = w.acquire(3, writing);
               if (also.granted()) w.release(also);
               w.pass(8ms);
               if (first.granted()) w.drop(first);
               w.await(c);
               task& d = w.acquire(1, writing);
               if (c.granted()) w.drop(c);
               w.await(d);
               if (d.granted()) w.release(d);
               w.await(w.once(1, writing));
             },
         .settings = [] { return with_turns(); }});
}

TEST_CASE("sweep: turns of writers and readers of two clients") {
  sweep({.play =
             [](world& w) {
               task* held = &w.acquire(1, writing);
               w.await(*held);
               task& other = w.acquire(7, in(read_mode, 0ms, 1));
               for (std::uint64_t i = 0; i < 4; ++i) {
                 if (held->granted()) w.drop(*held);
                 held = &w.acquire(1 + i % 2, i == 2 ? reading : writing);
                 w.until([&] {
                   if (other.granted() && !other.ended) w.drop(other);
                   return held->done();
                 });
                 if (i == 1) w.pass(6ms);
               }
               if (held->granted()) w.drop(*held);
               w.await(other);
             },
         .settings = [] { return with_turns(); },
         .clients = 2});
}

}  // namespace machine_write_turns
