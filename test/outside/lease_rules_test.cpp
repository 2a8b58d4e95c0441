// Who ends what: only its lease ends a hold that a lease shows.
#include <outside/outsider.hpp>
#include <support/catch.hpp>
#include <support/errors.hpp>
#include <support/event_log.hpp>

#include <boost/asio/use_future.hpp>

#include <mutex>

using namespace latchkey;
using namespace latchkey::outside;
using latchkey::test::thrown_by;
using latchkey::test::value_of;

namespace {

acquire_options as(owner who) { return {.wait = 0ms, .owner = who}; }

// The lock is what the lease says it is: held here, and by nobody else.
void check_held(client& second, lease const& held, std::string const& name) {
  CHECK(held.held());
  CHECK_FALSE(held.lost().stop_requested());
  CHECK_FALSE(second.get_lock(name).try_lock());
}

void check_refused(lock_error const& error) {
  CHECK(error.code() == errc::not_owner);
  CHECK(error.server_text().find("lease") != std::string::npos);
}

}  // namespace

TEST_CASE("unlock does not end a hold that a lease shows", "[outside][edge-1]") {
  client ours(shared_server().uri()), second(shared_server().uri());
  auto const name = fresh_name();
  auto const lock = ours.get_lock(name);
  lease held = lock.acquire(as(owner::this_thread()));
  REQUIRE(held);
  check_refused(thrown_by([&] { lock.unlock(); }));
  check_held(second, held, name);
  CHECK(held.release() == release_result::released);
  CHECK(second.get_lock(name).try_lock());
  second.get_lock(name).unlock();
}

TEST_CASE("async_unlock does not end a hold that a lease shows", "[outside][edge-1]") {
  client ours(shared_server().uri()), second(shared_server().uri());
  auto const name = fresh_name();
  auto const lock = ours.get_lock(name);
  owner const me = owner::make();
  lease held = lock.acquire(as(me));
  REQUIRE(held);
  CHECK(test::error_in(lock.async_unlock(me, asio::use_future)) == errc::not_owner);
  check_held(second, held, name);
}

TEST_CASE("unlock ends the hold that lock took, the lease its own", "[outside][edge-1]") {
  client ours(shared_server().uri()), second(shared_server().uri());
  auto const name = fresh_name();
  auto const lock = ours.get_lock(name);
  lock.lock();
  lease held = lock.acquire(as(owner::this_thread()));
  REQUIRE(held);
  CHECK(lock.hold_count() == 2);
  lock.unlock();
  CHECK(lock.hold_count() == 1);
  check_held(second, held, name);
  CHECK(held.release() == release_result::released);
  CHECK(lock.hold_count() == 0);
  CHECK(ours.snapshot().held == 0);
  CHECK(second.get_lock(name).try_lock());
  second.get_lock(name).unlock();
}

TEST_CASE("a lease that ends first leaves the hold that lock took", "[outside][edge-1]") {
  client ours(shared_server().uri()), second(shared_server().uri());
  auto const name = fresh_name();
  auto const lock = ours.get_lock(name);
  lock.lock();
  lease held = lock.acquire(as(owner::this_thread()));
  REQUIRE(held);
  CHECK(held.release() == release_result::still_held);
  CHECK_FALSE(second.get_lock(name).try_lock());
  lock.unlock();
  CHECK(ours.snapshot().held == 0);
  CHECK_FALSE(shared_server().exists(name));
}

TEST_CASE("a guard inside a lease ends what it took itself", "[outside][edge-1]") {
  client ours(shared_server().uri()), second(shared_server().uri());
  auto const name = fresh_name();
  auto const lock = ours.get_lock(name);
  lease held = lock.acquire(as(owner::this_thread()));
  REQUIRE(held);
  {
    std::unique_lock guard(lock);
    lease inner = lock.acquire(as(owner::this_thread()));
    REQUIRE(inner);
    CHECK(lock.hold_count() == 3);
  }
  CHECK(lock.hold_count() == 1);
  check_held(second, held, name);
}

TEST_CASE("as_mutex says in an event that only a lease has the lock", "[outside][edge-1]") {
  test::event_log log;
  config settings;
  settings.on_event = log.callback();
  client ours(shared_server().uri(), settings);
  client second(shared_server().uri());
  auto const name = fresh_name();
  lease held = ours.get_lock(name).acquire(as(owner::this_thread()));
  REQUIRE(held);
  ours.get_lock(name).as_mutex().unlock();
  CHECK(log.wait_for(event_type::unlock_failed));
  check_held(second, held, name);
}

TEST_CASE("the lost hold of lock is remembered for its unlock, beside a lease", "[outside][edge-1]") {
  client ours(shared_server().uri());
  auto const name = fresh_name();
  auto const lock = ours.get_lock(name);
  lock.lock(50ms);
  REQUIRE(test::wait_until([&] { return !lock.is_locked() && ours.snapshot().lost == 1; }));
  lease held = lock.acquire(as(owner::this_thread()));
  REQUIRE(held);
  CHECK(thrown_by([&] { lock.unlock(); }).code() == errc::lease_lost);
  CHECK(held.held());
  check_refused(thrown_by([&] { lock.unlock(); }));
  CHECK(held.release() == release_result::released);
}

TEST_CASE("nothing but the joint lease ends the holds of a multi lock's members", "[outside][edge-1]") {
  client ours(shared_server().uri()), second(shared_server().uri());
  auto const a = fresh_name(), b = fresh_name();
  auto const first = ours.get_lock(a);
  auto const all = ours.get_multi_lock({first, ours.get_lock(b)});
  lease held = all.acquire(as(owner::this_thread()));
  REQUIRE(held);
  check_refused(thrown_by([&] { all.unlock(); }));
  check_refused(thrown_by([&] { first.unlock(); }));
  check_held(second, held, a);
  check_held(second, held, b);

  first.lock();
  all.lock();
  all.unlock();
  first.unlock();
  check_held(second, held, a);
  CHECK(held.release() == release_result::released);
  CHECK(ours.snapshot().held == 0);
}

TEST_CASE("a member of a multi lock that is held by lock is not unlocked alone", "[outside][edge-1]") {
  client ours(shared_server().uri()), second(shared_server().uri());
  auto const a = fresh_name(), b = fresh_name();
  auto const first = ours.get_lock(a);
  auto const all = ours.get_multi_lock({first, ours.get_lock(b)});
  all.lock();
  CHECK(thrown_by([&] { first.unlock(); }).code() == errc::not_owner);
  CHECK_FALSE(second.get_lock(a).try_lock());
  all.unlock();
  CHECK(second.get_lock(a).try_lock());
  second.get_lock(a).unlock();
}

TEST_CASE("a thread that reads may read once more by a lease", "[outside][edge-12]") {
  client ours(shared_server().uri()), second(shared_server().uri());
  auto const name = fresh_name();
  auto const lock = ours.get_read_write_lock(name);
  lock.read_lock().lock();
  {
    lease again = lock.read_lock().acquire();
    REQUIRE(again.held());
    CHECK_FALSE(second.get_read_write_lock(name).write_lock().try_lock());
    CHECK(thrown_by([&] { auto never = lock.write_lock().acquire(); }).code() == errc::would_deadlock);
  }
  lock.read_lock().unlock();
  lock.write_lock().lock();
  CHECK(thrown_by([&] { auto never = lock.read_lock().acquire(); }).code() == errc::would_deadlock);
  CHECK(thrown_by([&] { auto never = lock.write_lock().acquire(); }).code() == errc::would_deadlock);
  lock.write_lock().unlock();
}

TEST_CASE("a thread that reads would wait for itself behind a writer of its client", "[outside][edge-12]") {
  client ours(shared_server().uri());
  auto const name = fresh_name();
  auto const lock = ours.get_read_write_lock(name);
  owner const writer = owner::make();
  lock.read_lock().lock();
  auto writes = lock.write_lock().async_lock(writer, asio::use_future);
  REQUIRE(test::wait_until([&] { return ours.snapshot().waiting == 1; }));
  CHECK(thrown_by([&] { auto never = lock.read_lock().acquire(); }).code() == errc::would_deadlock);
  lock.read_lock().unlock();
  CHECK_FALSE(test::error_in(std::move(writes)));
  CHECK_FALSE(test::error_in(lock.write_lock().async_unlock(writer, asio::use_future)));
}
