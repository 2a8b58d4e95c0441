// The read/write lock against a real server: what it writes, and who gets in.
#include <latchkey/latchkey.hpp>
#include <support/catch.hpp>
#include <support/errors.hpp>
#include <support/run_coro.hpp>
#include <support/worlds.hpp>

#include <boost/asio/use_future.hpp>

#include <future>
#include <string>

// GCC 12 inlines how Asio allocates the frame of a coroutine, but not how it frees it, and warns of the difference.
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"

using namespace latchkey;
using namespace latchkey::test;

TEST_CASE("read/write lock: a read hold is a count in the hash and a key with its lease", "[server][kind]") {
  rw_world w;
  w.reads.lock();
  CHECK(w.admin.hash(w.name) == fields{{"mode", "read"}, {w.field(w.me), "1"}});
  CHECK(w.admin.text("GET", w.stamp(w.me, 1)) == "1");
  CHECK((about(w.ttl(w.name), 30s) && about(w.ttl(w.stamp(w.me, 1)), 30s)));
  w.reads.lock(10s);
  CHECK(w.admin.hash(w.name) == fields{{"mode", "read"}, {w.field(w.me), "2"}});
  CHECK(about(w.ttl(w.stamp(w.me, 2)), 10s));
  CHECK(about(w.ttl(w.name), 30s));
  w.reads.unlock();
  CHECK(w.admin.integer("EXISTS", w.stamp(w.me, 2)) == 0);
  w.reads.unlock();
  CHECK(w.admin.integer("EXISTS", w.name, w.stamp(w.me, 1)) == 0);
}

TEST_CASE("read/write lock: a write hold is a count in the hash", "[server][kind]") {
  rw_world w;
  auto const mine = w.field(w.me) + ":write";
  w.writes.lock(20s);
  CHECK(w.admin.hash(w.name) == fields{{"mode", "write"}, {mine, "1"}});
  CHECK(about(w.ttl(w.name), 20s));
  w.writes.lock(10s);  // the greater of both, not Redisson's sum
  CHECK(w.admin.hash(w.name) == fields{{"mode", "write"}, {mine, "2"}});
  CHECK(about(w.ttl(w.name), 20s));
  w.writes.unlock();
  CHECK(w.admin.hash(w.name) == fields{{"mode", "write"}, {mine, "1"}});
  w.writes.unlock();
  CHECK(w.admin.integer("EXISTS", w.name) == 0);
}

TEST_CASE("read/write lock: a name with a brace of its own keeps it in all keys", "[server][kind]") {
  rw_world w;
  auto const name = "{" + w.name + "}:part";
  auto const rw = w.own.get_read_write_lock(name);
  auto listener = common_server().admin();
  listener.send({"SUBSCRIBE", "redisson_rwlock:" + name});
  listener.receive();
  rw.read_lock().lock();
  CHECK(w.admin.integer("EXISTS", name + ":" + w.field(w.me) + ":rwlock_timeout:1") == 1);
  rw.read_lock().unlock();
  CHECK(listener.receive().elements.at(2).text == "0");
  rw.write_lock().lock();
  rw.write_lock().unlock();
  CHECK(listener.receive().elements.at(2).text == "1");
}

TEST_CASE("read/write lock: any number of readers or one writer", "[server][kind]") {
  rw_world w;
  auto const somebody = owner::make();
  w.reads.lock();
  CHECK(w.their_reads.try_lock());
  CHECK_FALSE(error_in(w.reads.async_lock(somebody, asio::use_future)));
  CHECK(w.admin.hash(w.name).size() == 4);
  CHECK_FALSE(w.their_writes.acquire({.wait = brief_wait}));
  CHECK_FALSE(value_of(w.writes.async_try_lock(owner::make(), asio::use_future)));
  w.reads.unlock();
  w.their_reads.unlock();
  CHECK_FALSE(w.their_writes.try_lock());
  CHECK_FALSE(error_in(w.reads.async_unlock(somebody, asio::use_future)));
  CHECK(w.their_writes.try_lock());
  CHECK_FALSE(w.reads.try_lock());
  CHECK_FALSE(w.reads.try_lock(brief_wait));
  CHECK_FALSE(w.writes.try_lock());
  w.their_writes.unlock();
  CHECK(w.writes.try_lock());
  w.writes.unlock();
}

TEST_CASE("read/write lock: who writes may read, and keeps the read hold renewed after the downgrade",
          "[server][kind]") {
  event_log log;
  auto settings = quick_config(log);
  settings.lock_watchdog_timeout = 2s * slowness;
  client own(common_server().uri(), settings);
  rw_world w;
  auto const rw = own.get_read_write_lock(w.name);
  auto const field = own.id() + ":" + to_string(w.me);
  rw.write_lock().lock();
  rw.read_lock().lock();
  CHECK(w.admin.hash(w.name) == fields{{"mode", "write"}, {field + ":write", "1"}, {field, "1"}});
  auto waiter = std::async(std::launch::async, [&] {
    w.reads.lock();
    w.reads.unlock();
  });
  REQUIRE(w.log.wait_for(event_type::waiting, w.name));
  REQUIRE(wait_until([&] { return w.listeners() == 1; }));
  rw.write_lock().unlock();
  // Readers who wait are told: Redisson leaves them to the time to live.
  CHECK(waiter.wait_for(patience) == std::future_status::ready);
  CHECK(w.admin.hash(w.name) == fields{{"mode", "read"}, {field, "1"}});
  auto const renewals = own.snapshot().renewals;
  CHECK(wait_until([&] { return own.snapshot().renewals >= renewals + 4; }));
  CHECK(rw.read_lock().is_held_by_current_thread());
  CHECK_FALSE(w.their_writes.try_lock());
  rw.read_lock().unlock();
  CHECK(log.count_after(own, event_type::lost) == 0);
  CHECK(w.their_writes.try_lock());
  w.their_writes.unlock();
}

TEST_CASE("read/write lock: the write side asked for with a read hold only is would_deadlock at once",
          "[server][kind][case-23]") {
  rw_world w;
  w.reads.lock();
  for (bool const with_others : {false, true}) {
    if (with_others) w.their_reads.lock();
    auto const before = w.admin.hash(w.name);
    auto const scripts = w.own.snapshot().scripts;
    CHECK(error_of([&] { w.writes.lock(); }) == errc::would_deadlock);
    CHECK(error_of([&] { return w.writes.try_lock(); }) == errc::would_deadlock);
    CHECK(error_of([&] { return w.writes.try_lock(1h, 1s); }) == errc::would_deadlock);
    CHECK(error_of([&] { return w.writes.acquire(); }) == errc::would_deadlock);
    CHECK(error_of([&] { return w.writes.acquire({.wait = 1h, .owner = w.me}); }) == errc::would_deadlock);
    CHECK(error_in(w.writes.async_lock(w.me, asio::use_future)) == errc::would_deadlock);
    CHECK(w.own.snapshot().scripts == scripts);
    CHECK(w.admin.hash(w.name) == before);
  }
  w.their_reads.unlock();
  w.reads.unlock();
  w.writes.lock();
  w.writes.unlock();
}

TEST_CASE("read/write lock: readers that come without end do not keep a writer of their client out", "[server][kind]") {
  rw_world w;
  std::atomic<bool> written = false, late = false;
  auto const reader = [&] {
    while (!written) {
      w.reads.lock();
      w.reads.unlock();
    }
  };
  std::vector<std::future<void>> readers;
  auto const first = owner::make();
  REQUIRE_FALSE(error_in(w.reads.async_lock(first, asio::use_future)));
  for (int i = 0; i < 3; ++i) readers.push_back(std::async(std::launch::async, reader));
  auto writer = std::async(std::launch::async, [&] {
    late = !w.writes.try_lock(patience);
    written = true;
    if (!late) w.writes.unlock();
  });
  REQUIRE(wait_until([&] { return w.own.snapshot().waiting == 4; }));
  CHECK_FALSE(value_of(w.reads.async_try_lock(owner::make(), asio::use_future)));  // nobody passes the writer
  REQUIRE_FALSE(error_in(w.reads.async_unlock(first, asio::use_future)));
  writer.get();
  for (auto& one : readers) one.get();
  CHECK_FALSE(late);
}

TEST_CASE("read/write lock: readers behind a writer get in together when it leaves", "[server][kind]") {
  rw_world w;
  w.their_writes.lock();
  std::vector<std::future<lease>> readers;
  for (int i = 0; i < 20; ++i) readers.push_back(w.reads.async_acquire(asio::use_future));
  REQUIRE(wait_until([&] { return w.own.snapshot().waiting == 20 && w.listeners() == 1; }));
  w.their_writes.unlock();
  std::vector<lease> held;
  for (auto& one : readers) held.push_back(value_of(std::move(one)));
  for (auto& one : held) CHECK(one.held());
  CHECK(w.admin.hash(w.name).size() == 21);
  held.clear();
  CHECK(wait_until([&] { return w.admin.integer("EXISTS", w.name) == 0; }));
}

TEST_CASE("read/write lock: each side answers questions about itself", "[server][kind]") {
  rw_world w;
  auto const check = [&](bool reading, bool writing, int reads, int writes) {
    CHECK(w.reads.is_locked() == reading);
    CHECK(w.writes.is_locked() == writing);
    CHECK(value_of(w.their_reads.async_is_locked(asio::use_future)) == reading);
    CHECK(value_of(w.their_writes.async_is_locked(asio::use_future)) == writing);
    CHECK(w.reads.hold_count() == reads);
    CHECK(w.writes.hold_count() == writes);
    CHECK(w.reads.is_held_by_current_thread() == (reads > 0));
    CHECK(value_of(w.writes.async_is_held_by(w.me, asio::use_future)) == (writes > 0));
    CHECK(w.their_reads.hold_count() == 0);
    CHECK(w.writes.remaining_time_to_live().has_value() == (reading || writing));
  };
  check(false, false, 0, 0);
  w.writes.lock();
  check(false, true, 0, 1);
  w.reads.lock();
  w.reads.lock();
  check(true, true, 2, 1);
  w.writes.unlock();
  check(true, false, 2, 0);
  w.reads.unlock();
  w.reads.unlock();
  check(false, false, 0, 0);
}

TEST_CASE("read/write lock: force_unlock removes what is held in the mode of its side", "[server][kind]") {
  rw_world w;
  CHECK_FALSE(w.reads.force_unlock());
  CHECK_FALSE(w.writes.force_unlock());
  w.reads.lock();
  w.their_reads.lock();
  CHECK_FALSE(w.writes.force_unlock());
  auto waiter = w.writes.async_acquire(asio::use_future);
  REQUIRE(wait_until([&] { return w.listeners() == 1; }));
  CHECK(value_of(w.their_reads.async_force_unlock(asio::use_future)));
  lease written = value_of(std::move(waiter));
  CHECK(written.held());
  CHECK_FALSE(w.reads.force_unlock());
  auto reader = w.their_reads.async_acquire(asio::use_future);
  REQUIRE(wait_until([&] { return w.listeners() == 2; }));
  CHECK(w.writes.force_unlock());
  CHECK(value_of(std::move(reader)).held());
  CHECK(error_of([&] { w.reads.unlock(); }) == errc::lease_lost);
}

TEST_CASE("read/write lock: handles of one name and client are equal, side by side", "[server][kind]") {
  rw_world w;
  CHECK(w.rw == w.own.get_read_write_lock(w.name));
  CHECK(w.rw.read_lock() == w.own.get_read_write_lock(w.name).read_lock());
  CHECK(w.reads != w.writes);
  CHECK(w.reads != w.own.get_lock(w.name));
  CHECK_FALSE(w.rw == w.other.get_read_write_lock(w.name));
  CHECK((w.rw.name() == w.name && w.reads.name() == w.name));
  CHECK(error_of([&] { return w.own.get_read_write_lock(""); }) == errc::bad_argument);
  CHECK(error_of([&] { return w.own.get_read_write_lock(std::string(70'000, 'x')); }) == errc::bad_argument);
}

TEST_CASE("read/write lock: coroutines, with_lock and std guards take either side", "[server][kind]") {
  rw_world w;
  run_coro([](rw_world& world) -> asio::awaitable<void> {
    auto const who = owner::make();
    co_await world.writes.async_lock(who);
    co_await world.reads.async_lock(who, 5s);
    co_await world.writes.async_unlock(who);
    std::size_t seen = 0;
    co_await with_lock(world.their_reads, [&](lease& held) -> asio::awaitable<void> {
      if (held.held()) seen = world.admin.hash(world.name).size();
      co_return;
    });
    CHECK(seen == 3);
    co_await world.reads.async_unlock(who);
  }(w));
  {
    std::scoped_lock const guard(w.writes);
    CHECK_FALSE(w.their_reads.try_lock());
  }
  auto const mutex = w.reads.as_mutex();
  std::lock_guard<std_mutex const> const guard(mutex);
  CHECK(w.their_reads.try_lock());
  w.their_reads.unlock();
}
