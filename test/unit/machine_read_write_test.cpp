#include <support/catch.hpp>
#include <support/unit/stories.hpp>
#include <support/unit/sweep.hpp>
#include <wire/kinds.hpp>

namespace machine_read_write {

using namespace latchkey;
using namespace latchkey::test;
using namespace std::chrono_literals;

// The read/write lock through the machines, with a server that does what its scripts do.

namespace {

constexpr unsigned char read_mode = 0, write_mode = 1;

how on(unsigned char side, std::size_t client = 0, milliseconds lease = 0ms) {
  return {.lease = lease, .client = client, .which = &detail::read_write_kind(), .mode = side};
}

struct rw_world : world {
  using world::world;
  std::int64_t stamp(std::uint64_t owner, int i) {
    return server.ttl("{k}:" + field(owner) + ":rwlock_timeout:" + std::to_string(i));
  }
};

}  // namespace

TEST_CASE("read/write lock: a downgrade keeps the read hold, renewed, and lets other readers in") {
  rw_world w(seen_by_the_server(), 2);
  task& writer = granted(w, w.acquire(1, on(write_mode)));
  task& reader = granted(w, w.acquire(1, on(read_mode)));
  task& other = w.run(w.acquire(2, on(read_mode, 1)));
  CHECK_FALSE(other.done());
  w.run(w.release(writer));
  CHECK(other.granted());
  w.pass(100s);
  CHECK((reader.trusted(w.now) && other.trusted(w.now)));
  CHECK(w.stamp(1, 1) > 15'000);
  task& up = w.acquire(1, on(write_mode));
  CHECK(up.error == errc::would_deadlock);
  w.finish();
}

TEST_CASE("read/write lock: holds of one owner end in any order, and the longest that stays counts") {
  rw_world w(seen_by_the_server(), 2);
  task& brief = granted(w, w.acquire(1, on(read_mode, 0, 5s)));
  task& longer = granted(w, w.acquire(1, on(read_mode, 0, 50s)));
  task& theirs = granted(w, w.acquire(2, on(read_mode, 1, 1s)));
  w.run(w.release(brief));
  CHECK(w.stamp(1, 1) > 45'000);
  CHECK(w.stamp(1, 2) == -2);
  w.run(w.release(theirs));
  CHECK(w.server.ttl("k") > 45'000);
  task& again = granted(w, w.acquire(1, on(read_mode, 0, 5s)));
  w.run(w.release(longer));
  CHECK(w.server.ttl("k") <= 5'000);
  w.pass(6s);
  CHECK(again.losses == 1);
  CHECK(w.server.all().empty());
  w.finish();
}

TEST_CASE("read/write lock: an acquire that corrects the count keeps the longest of the holds that stay") {
  rw_world w(seen_by_the_server(), 2);
  granted(w, w.acquire(1, on(read_mode, 0, 500ms)));
  granted(w, w.acquire(1, on(read_mode, 0, 60s)));
  task& other = granted(w, w.acquire(2, on(read_mode, 1)));
  w.server.refuse("EVALSHA rw_acquire", "LOADING Redis is loading the dataset in memory", -1);
  w.acquire(1, on(read_mode, 0, 2s));
  w.pass(600ms);  // the first one has ended while the third is still unsent
  w.server.accept_all();
  w.pass(1s);
  w.release(other);  // sets the hash to what the stamps say
  w.run();
  CHECK(w.server.ttl("k") > 50'000);
  w.finish();
}

TEST_CASE("sweep: read/write lock: a writer, readers, a downgrade") {
  sweep({.play =
             [](world& w) {
               task& writer = w.await(w.acquire(1, on(write_mode)));
               task& own = w.acquire(1, on(read_mode));
               task& a = w.acquire(2, on(read_mode));
               task& b = w.run(w.acquire(3, on(read_mode, 1)));
               w.await(own);
               if (writer.granted()) w.release(writer);
               w.await(a, b);
               w.expect(own.granted() && a.granted() && b.granted(), "all read");
               task& second = w.acquire(4, on(write_mode, 1));
               task& third = w.run(w.acquire(5, on(read_mode, 1)));
               w.expect(!second.done() && !third.done(), "behind the readers");
               for (task* one : {&own, &a, &b})
                 if (one->granted()) w.release(*one);
               w.await(second);
               w.expect(second.granted(), "then the second writer");
               if (second.granted()) w.drop(second);
               w.await(third);
               w.expect(third.granted(), "then the last reader");
             },
         .clients = 2});
}

TEST_CASE("sweep: read/write lock: both sides of one owner, leases, extend") {
  sweep({.play = [](world& w) {
    task& writer = w.await(w.acquire(1, on(write_mode)));
    task& reader = w.acquire(1, on(read_mode, 0, 2s));
    task& again = w.acquire(1, on(write_mode, 0, 1s));
    w.await(reader, again);
    if (reader.granted() && !reader.shown.lost) w.await(w.extend(reader, 20s));
    if (writer.granted()) w.release(writer);
    w.pass(1'500ms);
    w.expect(again.losses == 1 && reader.losses == 0, "the write lease is over, the read lease is not");
    task& other = w.await(w.acquire(2, on(read_mode)));
    w.expect(other.granted(), "the lock is open for readers");
  }});
}

}  // namespace machine_read_write
