// Who ends what: only its lease ends a hold that a lease shows.
#include <outside/outsider.hpp>
#include <support/catch.hpp>
#include <support/configs.hpp>
#include <support/errors.hpp>
#include <support/event_log.hpp>
#include <support/fault_proxy.hpp>

#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>

#include <future>
#include <mutex>
#include <string>

using namespace latchkey;
using namespace latchkey::outside;
using latchkey::test::thrown_by;
using latchkey::test::value_of;
using test::slowness;

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

TEST_CASE_METHOD(one_lock, "unlock does not end a hold that a lease shows", "[outside][edge-1]") {
  lease held = lock.acquire(as(owner::this_thread()));
  REQUIRE(held);
  check_refused(thrown_by([&] { lock.unlock(); }));
  check_held(second, held, name);
  CHECK(held.release() == release_result::released);
  CHECK(second.get_lock(name).try_lock());
  second.get_lock(name).unlock();
}

TEST_CASE_METHOD(one_lock, "async_unlock does not end a hold that a lease shows", "[outside][edge-1]") {
  owner const me = owner::make();
  lease held = lock.acquire(as(me));
  REQUIRE(held);
  CHECK(test::error_in(lock.async_unlock(me, asio::use_future)) == errc::not_owner);
  check_held(second, held, name);
}

TEST_CASE_METHOD(one_lock, "unlock ends the hold that lock took, the lease its own", "[outside][edge-1]") {
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

TEST_CASE_METHOD(one_lock, "a lease that ends first leaves the hold that lock took", "[outside][edge-1]") {
  lock.lock();
  lease held = lock.acquire(as(owner::this_thread()));
  REQUIRE(held);
  CHECK(held.release() == release_result::still_held);
  CHECK_FALSE(second.get_lock(name).try_lock());
  lock.unlock();
  CHECK(ours.snapshot().held == 0);
  CHECK_FALSE(shared_server().exists(name));
}

TEST_CASE_METHOD(one_lock, "a guard inside a lease ends what it took itself", "[outside][edge-1]") {
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
  client ours(shared_server().uri(), {.on_event = log.callback()});
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
  lock.lock(test::brief_lease);
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

TEST_CASE_METHOD(two_clients, "a thread that reads may read once more by a lease", "[outside][edge-12]") {
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

// How long what is held lasts, and what becomes of what cannot be given back.

namespace {

config logged(test::event_log const& log) { return {.on_event = log.callback()}; }

}  // namespace

TEST_CASE("max_hold bounds the first lease", "[outside][edge-4]") {
  server& redis = shared_server();
  test::event_log log;
  client ours(redis.uri(), logged(log)), second(redis.uri());
  auto const name = fresh_name();
  auto const begun = test::clock::now();
  lease held = ours.get_lock(name).acquire({.max_hold = 500ms});
  CHECK(held.remaining() <= 500ms);
  CHECK(redis.pttl(name) <= 500ms);
  lease theirs = second.get_lock(name).acquire({.wait = 20s});
  CHECK(theirs.held());
  CHECK_FALSE(held.held());
  CHECK(test::clock::now() - begun >= 490ms);
  CHECK(test::clock::now() - begun < 10s);
  CHECK(log.wait_for(event_type::max_hold_reached, name));
  CHECK(log.wait_for(event_type::lost, name));
}

TEST_CASE("max_hold bounds every renewal, and a longer hold of the same owner keeps the lock", "[outside][edge-4]") {
  server& redis = shared_server();
  test::event_log log;
  auto settings = logged(log);
  settings.lock_watchdog_timeout = 900ms * slowness;
  settings.timeout = 250ms * slowness;
  client ours(redis.uri(), settings);
  auto const name = fresh_name();
  auto const bound = 2000ms * slowness;
  auto const late = 500ms * slowness;  // a renewal too many would be later yet
  owner const me = owner::make();
  ours.connect();
  auto const begun = test::clock::now();
  lease held = ours.get_lock(name).acquire({.owner = me, .max_hold = bound});
  lease other = ours.get_lock(name).acquire({.lease = 60s, .owner = me});
  REQUIRE((held && other));
  CHECK(redis.pttl(name) > 50s);
  CHECK(other.release() == release_result::still_held);
  CHECK(redis.pttl(name) <= settings.lock_watchdog_timeout);
  while (held.held()) {
    auto const left = bound - (test::clock::now() - begun);
    CHECK(held.remaining() <= left + late);
    CHECK(redis.pttl(name) <= std::max<std::chrono::nanoseconds>(left, 0ms) + late);
    std::this_thread::sleep_for(20ms);
  }
  CHECK(test::clock::now() - begun >= bound - 10ms);
  CHECK(log.wait_for(event_type::max_hold_reached, name));
  CHECK(ours.snapshot().renewals > 0);
  CHECK(test::wait_until([&] { return !redis.exists(name); }));
}

TEST_CASE("max_hold bounds the members of a multi lock and of a red lock", "[outside][edge-4]") {
  server& redis = shared_server();
  client ours(redis.uri());
  auto const a = fresh_name(), b = fresh_name(), c = fresh_name();
  std::vector<distributed_lock> const members{ours.get_lock(a), ours.get_lock(b), ours.get_lock(c)};
  auto const all = GENERATE(false, true) ? ours.get_multi_lock(members) : ours.get_red_lock(members);
  lease held = all.acquire({.max_hold = 2s});
  REQUIRE(held.held());
  for (auto const& name : {a, b, c}) CHECK(redis.pttl(name) <= 2s);
  CHECK(held.remaining() > 1s);
}

TEST_CASE("who waits elsewhere is woken when a renewal finds the hold gone", "[outside][edge-8]") {
  server& redis = shared_server();
  config settings;
  settings.lock_watchdog_timeout = 1500ms;
  settings.timeout = 500ms;
  client ours(redis.uri(), settings), second(redis.uri());
  auto const name = fresh_name();
  auto const kind = GENERATE(range(0, 6));
  INFO("kind " << kind);
  auto const of = [&](client& from) -> distributed_lock {
    switch (kind) {
      case 0: return from.get_lock(name);
      case 1: return from.get_fenced_lock(name);
      case 2: return from.get_plain_lock(name);
      case 3: return from.get_read_write_lock(name).read_lock();
      case 4: return from.get_read_write_lock(name).write_lock();
      default: return from.get_fair_lock(name);
    }
  };
  auto const wanted = kind == 3 ? second.get_read_write_lock(name).write_lock() : of(second);
  lease held = of(ours).acquire();
  REQUIRE(held);
  REQUIRE(redis.cli({"PEXPIRE", name, "60000"}) == "1");  // by which those who wait sleep
  auto next = std::async(std::launch::async, [&] { return wanted.acquire({.wait = 25s * slowness}); });
  REQUIRE(test::wait_until([&] { return second.snapshot().waiting == 1 && second.snapshot().subscriptions == 1; }));
  auto const begun = test::clock::now();
  REQUIRE(redis.cli({"DEL", name}) == "1");
  lease theirs = next.get();
  CHECK(theirs.held());
  CHECK(test::clock::now() - begun < 10s * slowness);
  CHECK(test::wait_until([&] { return !held.held(); }));
}

// The server remembers the request for 20 s: so long it takes.
TEST_CASE("a permit that cannot be given back is an event", "[outside][edge-10]") {
  server redis(true);
  test::fault_proxy proxy(redis.where());
  test::event_log log;
  auto settings = logged(log);
  settings.timeout = 500ms;
  client ours(proxy.uri(), settings);
  auto const name = fresh_name();
  auto const all = ours.get_semaphore(name);
  REQUIRE(all.try_set_permits(1));
  proxy.swallow_replies(true);
  CHECK(test::error_of([&] { return all.try_acquire(1, 200ms); }) == errc::timeout);
  REQUIRE(test::wait_until([&] { return redis.cli({"GET", name}) == "0"; }));
  proxy.refuse(true);
  proxy.cut();
  auto const marks = [&] { return redis.cli({"KEYS", "latchkey_request*"}); };
  CHECK_FALSE(marks().empty());
  REQUIRE(test::wait_until([&] { return marks().empty(); }, 40s * slowness));
  CHECK(log.count_after(ours, event_type::permit_lost) == 0);
  proxy.swallow_replies(false);
  proxy.refuse(false);
  CHECK(log.wait_for(event_type::permit_lost, name));
  CHECK(redis.cli({"GET", name}) == "0");
  all.add_permits(1);
  CHECK(all.try_acquire());
}

TEST_CASE_METHOD(one_lock, "a body of with_lock that ends its own hold has lost nothing", "[outside][edge-34]") {
  std::string token;
  auto const releasing = [&](lease& held) -> asio::awaitable<int> {
    co_await held.async_release(asio::use_awaitable);
    co_return shared_server().exists(name) ? 0 : 1;
  };
  auto const detaching = [&](lease& held) -> asio::awaitable<void> {
    token = held.detach();
    co_return;
  };
  lease kept;
  auto const keeping = [&](lease& held) -> asio::awaitable<void> {
    kept = std::move(held);
    co_return;
  };
  CHECK(value_of(with_lock(lock, releasing, asio::use_future)) == 1);
  CHECK(test::error_in(with_lock(lock, detaching, asio::use_future)) == error_code());
  kept = second.adopt(token);
  CHECK(kept.release() == release_result::released);
  CHECK(test::error_in(with_lock(lock, keeping, asio::use_future)) == error_code());
  check_held(second, kept, name);
}

TEST_CASE_METHOD(two_clients, "a number that is no whole one is refused in words, and stays", "[outside][edge-35]") {
  auto const permits = ours.get_semaphore(name);
  auto const with_ids = ours.get_permit_semaphore(name);
  auto const latch = ours.get_count_down_latch(name);
  for (std::string const value : {"1.5", "1e3", "nan", "inf", "0x10", "+5"}) {
    INFO(value);
    REQUIRE(shared_server().cli({"SET", name, value}) == "OK");
    auto const check = [&](auto&& call) {
      auto const error = thrown_by(call);
      CHECK(error.code() == errc::server_error);
      CHECK(error.server_text().find("value is not an integer") != std::string::npos);
    };
    check([&] { return permits.drain_permits(); });
    check([&] { return permits.available_permits(); });
    check([&] { return with_ids.available_permits(); });
    check([&] { return with_ids.acquired_permits(); });
    check([&] { return latch.count(); });
    check([&] { return latch.wait_for(0ms); });
    CHECK(shared_server().cli({"GET", name}) == value);
  }
}
