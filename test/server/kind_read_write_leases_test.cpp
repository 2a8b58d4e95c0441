// Leases of a read/write lock: whose time counts, beside Redisson and with damage.
#include <latchkey/latchkey.hpp>
#include <support/catch.hpp>
#include <support/errors.hpp>
#include <support/worlds.hpp>

#include <boost/asio/use_future.hpp>

#include <string>

using namespace latchkey;
using namespace latchkey::test;

TEST_CASE("read/write lock: holds end in any order, and the longest that stays counts", "[server][kind]") {
  rw_world w;
  lease brief = w.reads.acquire({.lease = 20s, .owner = w.me});
  lease longer = w.reads.acquire({.lease = 100s, .owner = w.me});
  lease middle = w.reads.acquire({.lease = 50s, .owner = w.me});
  CHECK(brief.release() == release_result::still_held);
  CHECK((about(w.ttl(w.stamp(w.me, 1)), 100s) && about(w.ttl(w.stamp(w.me, 2)), 100s)));
  CHECK(about(w.ttl(w.name), 100s));
  CHECK(longer.release() == release_result::still_held);
  CHECK(w.admin.integer("EXISTS", w.stamp(w.me, 2), w.stamp(w.me, 3)) == 0);
  CHECK((about(w.ttl(w.stamp(w.me, 1)), 50s) && about(w.ttl(w.name), 50s)));
  CHECK(middle.held());
  CHECK(middle.release() == release_result::released);
}

TEST_CASE("read/write lock: a read release leaves the time that other readers need", "[server][kind]") {
  rw_world w;
  lease mine = w.reads.acquire({.lease = 100s, .owner = w.me});
  lease theirs = w.their_reads.acquire({.lease = 40s});
  CHECK(mine.release() == release_result::released);
  CHECK(about(w.ttl(w.name), 40s));
  CHECK(theirs.held());
}

TEST_CASE("read/write lock: a read release does not touch the time of the write hold", "[server][kind]") {
  rw_world w;
  lease written = w.writes.acquire({.lease = 100s, .owner = w.me});
  lease first = w.reads.acquire({.lease = 10s, .owner = w.me});
  lease second = w.reads.acquire({.lease = 10s, .owner = w.me});
  CHECK(first.release() == release_result::still_held);
  CHECK(about(w.ttl(w.name), 100s));
  CHECK(second.release() == release_result::released);
  CHECK(about(w.ttl(w.name), 100s));
  CHECK(w.admin.hash(w.name) == fields{{"mode", "write"}, {w.field(w.me) + ":write", "1"}});
}

TEST_CASE("read/write lock: after the downgrade the time is that of the read holds", "[server][kind]") {
  rw_world w;
  lease written = w.writes.acquire({.lease = 100s, .owner = w.me});
  lease read = w.reads.acquire({.lease = 20s, .owner = w.me});
  CHECK(written.release() == release_result::released);
  CHECK(about(w.ttl(w.name), 20s));
  CHECK(read.extend(200s));
  CHECK((about(w.ttl(w.name), 200s) && about(w.ttl(w.stamp(w.me, 1)), 200s)));
  CHECK(read.extend(20s));
  CHECK((about(w.ttl(w.name), 20s) && about(w.ttl(w.stamp(w.me, 1)), 20s)));
}

TEST_CASE("read/write lock: who waits to read is told when a writer keeps no more than a read hold", "[server][kind]") {
  rw_world w;
  lease written = w.writes.acquire({.lease = 60s, .owner = w.me});
  lease read = w.reads.acquire({.lease = 60s, .owner = w.me});
  auto waiting = w.their_reads.async_acquire(asio::use_future);
  // It has tried once more behind the confirmation; now only a message can wake it in time.
  REQUIRE(wait_until([&] { return w.listeners() == 1 && w.other.snapshot().scripts >= 2; }));
  CHECK(written.release() == release_result::released);
  CHECK(value_of(std::move(waiting)).held());
  CHECK(read.held());
}

TEST_CASE("read/write lock: extending one side leaves the other what it needs", "[server][kind]") {
  rw_world w;
  lease written = w.writes.acquire({.lease = 50s, .owner = w.me});
  lease read = w.reads.acquire({.lease = 100s, .owner = w.me});
  CHECK(written.extend(10s));
  CHECK(about(w.ttl(w.name), 100s));
  CHECK(read.extend(5s));
  CHECK(about(w.ttl(w.name), 100s));  // what the writer needs is known to his client alone
  CHECK(about(w.ttl(w.stamp(w.me, 1)), 5s));
}

TEST_CASE("read/write lock: the watchdog never shortens and puts back a key that went missing", "[server][kind]") {
  auto settings = quick_config();
  settings.lock_watchdog_timeout = 2s * slowness;
  client own(common_server().uri(), settings);
  rw_world w;
  lease longer = w.their_reads.acquire({.lease = 100s});
  lease renewed = own.get_read_write_lock(w.name).read_lock().acquire({.owner = w.me});
  auto const stamp = "{" + w.name + "}:" + own.id() + ":" + to_string(w.me) + ":rwlock_timeout:1";
  w.admin.ok("DEL", stamp);
  REQUIRE(wait_until([&] { return own.snapshot().renewals >= 1; }));
  CHECK(about(w.ttl(stamp), settings.lock_watchdog_timeout));
  CHECK(about(w.ttl(w.name), 100s));
  CHECK(longer.release() == release_result::released);
  CHECK(about(w.ttl(w.name), settings.lock_watchdog_timeout));
  CHECK(renewed.held());
}

TEST_CASE("read/write lock: readers of a process that died are not waited for", "[server][kind]") {
  rw_world w;
  REQUIRE_FALSE(w.redisson().read(brief_lease.count()));
  lease mine = w.reads.acquire({.lease = 100s, .owner = w.me});
  REQUIRE(wait_until([&] { return w.admin.ok("KEYS", "{" + w.name + "}:*").elements.size() == 1; }));
  auto writer = w.their_writes.async_acquire(asio::use_future);
  REQUIRE(wait_until([&] { return w.listeners() == 1; }));
  CHECK(mine.release() == release_result::released);
  CHECK(value_of(std::move(writer)).held());
}

TEST_CASE("read/write lock: a holder learns that its read hold was lost", "[server][kind][case-29]") {
  auto settings = quick_config();
  settings.lock_watchdog_timeout = 1s * slowness;
  client own(common_server().uri(), settings);
  rw_world w;
  for (auto const& side : {own.get_read_write_lock(w.name).read_lock(), own.get_read_write_lock(w.name).write_lock()}) {
    lease held = side.acquire();
    std::promise<error_code> told;
    held.on_lost([&](error_code why) { told.set_value(why); });
    w.admin.ok("DEL", w.name);
    CHECK(value_of(told.get_future()) == errc::lease_lost);
    CHECK_FALSE(held.held());
    CHECK(held.release() == release_result::expired);
  }
}

TEST_CASE("read/write lock: read holds of Redisson and of ours live side by side", "[server][kind]") {
  rw_world w;
  auto redisson = w.redisson();
  lease mine = w.reads.acquire({.lease = 60s, .owner = w.me});
  CHECK_FALSE(redisson.read(30'000));
  CHECK_FALSE(redisson.read(30'000));
  CHECK(redisson.write(30'000).has_value());
  CHECK(w.admin.hash(w.name) == fields{{"mode", "read"}, {w.field(w.me), "1"}, {redisson.owner(), "2"}});
  CHECK(redisson.unlock_read() == 0);
  CHECK(about(w.ttl(w.name), 60s));  // it has found our key
  CHECK(mine.release() == release_result::released);
  CHECK(about(w.ttl(w.name), 30s));  // and we have found its one
  lease writes = w.writes.acquire({.wait = brief_wait});
  CHECK_FALSE(writes);
  auto waiter = w.writes.async_acquire(asio::use_future);
  REQUIRE(wait_until([&] { return w.listeners() == 1; }));
  CHECK(redisson.unlock_read() == 1);
  writes = value_of(std::move(waiter));
  CHECK(redisson.read(1'000).has_value());
  CHECK_FALSE(redisson.unlock_write().has_value());
  CHECK(writes.held());
}

TEST_CASE("read/write lock: a Redisson writer keeps us out and lets us in", "[server][kind]") {
  rw_world w;
  auto redisson = w.redisson();
  CHECK_FALSE(redisson.write(60'000));
  CHECK_FALSE(w.reads.try_lock());
  CHECK_FALSE(w.writes.try_lock());
  CHECK(w.writes.is_locked());
  CHECK_FALSE(w.reads.is_locked());
  auto reader = w.reads.async_acquire(asio::use_future);
  REQUIRE(wait_until([&] { return w.listeners() == 1; }));
  CHECK(redisson.unlock_write() == 1);
  CHECK(value_of(std::move(reader)).held());
}

TEST_CASE("case 27: read/write lock: a count that is no number is refused, and the time stays", "[server][kind]") {
  rw_world w;
  w.reads.lock();
  w.admin.ok("HSET", w.name, w.field(w.me), "many");
  w.admin.ok("PEXPIRE", w.name, 500'000);
  CHECK(error_of([&] { w.reads.lock(); }) == errc::server_error);
  CHECK(about(w.ttl(w.name), 500s));
  CHECK(w.admin.hash(w.name) == fields{{"mode", "read"}, {w.field(w.me), "many"}});
  w.admin.ok("DEL", w.name);
  auto const who = owner::make();
  w.admin.ok("HSET", w.name, "mode", "write", w.field(who) + ":write", "1e300");
  w.admin.ok("PEXPIRE", w.name, 500'000);
  CHECK(error_in(w.writes.async_try_lock(who, asio::use_future)) == errc::server_error);
  CHECK(about(w.ttl(w.name), 500s));
}

TEST_CASE("case 26: read/write lock: a key of another kind is left alone", "[server][kind]") {
  rw_world w;
  w.admin.ok("SET", w.name, "text");
  for (auto const& side : {w.reads, w.writes}) {
    CHECK(error_of([&] { return side.try_lock(); }) == errc::wrong_type);
    CHECK(error_of([&] { return side.is_locked(); }) == errc::wrong_type);
    CHECK(error_of([&] { return side.force_unlock(); }) == errc::wrong_type);
  }
  CHECK(w.admin.text("GET", w.name) == "text");
  CHECK(w.admin.ok("KEYS", "{" + w.name + "}:*").elements.empty());
  w.admin.ok("DEL", w.name);
  // A reentrant lock of the same name is a hash without a mode: somebody has it.
  lease const held = w.own.get_lock(w.name).acquire();
  CHECK_FALSE((w.reads.try_lock() || w.writes.try_lock()));
  CHECK(w.admin.hash(w.name) == fields{{w.field(held.owner()), "1"}});
}

TEST_CASE("case 28: read/write lock: a holder without a time to live is waited for with a cap", "[server][kind]") {
  rw_world w;
  w.admin.ok("HSET", w.name, "mode", "write", "somebody:1:write", 1);
  w.own.connect();
  CHECK_FALSE(w.reads.try_lock(brief_wait));
  CHECK(w.log.wait_for(event_type::no_time_to_live, w.name));
  CHECK(w.reads.remaining_time_to_live() == milliseconds::max());
  CHECK(w.writes.force_unlock());
  CHECK(w.reads.try_lock());
  w.reads.unlock();
}
