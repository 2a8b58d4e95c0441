// Permits with ids and leases: what Redisson's RPermitExpirableSemaphore does.
#include <latchkey/latchkey.hpp>
#include <support/catch.hpp>
#include <support/errors.hpp>
#include <support/redis_server.hpp>
#include <support/run_coro.hpp>
#include <support/worlds.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>

#include <algorithm>
#include <future>
#include <limits>
#include <set>
#include <vector>

using namespace latchkey;
using namespace latchkey::test;

namespace {

bool is_id(std::string const& id) {
  return id.size() == 32 && id.find_first_not_of("0123456789abcdef") == std::string::npos;
}

asio::awaitable<void> take_and_give(permit_semaphore permits) {
  std::string const id = co_await permits.async_acquire();
  std::string const leased = co_await permits.async_acquire(10s);
  auto const none = co_await permits.async_try_acquire();
  check_equal(none.has_value(), false);
  check_equal((co_await permits.async_try_acquire(brief_wait)).has_value(), false);
  check_equal((co_await permits.async_try_acquire(brief_wait, 1s)).has_value(), false);
  check_equal(co_await permits.async_update_lease_time(leased, 20s), true);
  check_equal(co_await permits.async_acquired_permits(), 2);
  check_equal(co_await permits.async_try_release(id), true);
  check_equal(co_await permits.async_try_release(id), false);
  co_await permits.async_release(leased);
  check_equal(co_await permits.async_available_permits(), 2);
  acquire_options const options{.wait = 1s, .lease = 10s};
  permit one = co_await permits.async_acquire_permit(options);
  permit two = co_await permits.async_acquire_permit();
  check_equal(one.held() && two.held(), true);
  check_equal(co_await one.async_release(), release_result::released);
  check_equal(co_await two.async_extend(5s), true);
  check_equal(co_await two.async_release(), release_result::released);
  check_equal(co_await permits.async_try_set_permits(7), false);
  co_await permits.async_set_permits(5);
  co_await permits.async_add_permits(1);
  check_equal(co_await permits.async_available_permits(), 6);
}

}  // namespace

TEST_CASE("permit semaphore: a lease ends no earlier than it was granted for", "[server][kind]") {
  permit_world w;
  REQUIRE(w.permits.try_set_permits(1));
  for (int i = 0; i < 20; ++i) {  // the server's clock shows parts of a millisecond, scores do not
    auto const before = w.admin.now_us();
    std::string const id = w.permits.acquire(1s);
    CHECK(std::stoll(w.taken().at(id)) * 1'000 >= before + 1'000'000);
    auto const asked = w.admin.now_us();
    CHECK(w.permits.update_lease_time(id, 5s));
    CHECK(std::stoll(w.taken().at(id)) * 1'000 >= asked + 5'000'000);
    w.permits.release(id);
  }
}

TEST_CASE("permit semaphore: it shows as a number of free permits and a set of ids, and tells every change",
          "[server][kind]") {
  permit_world w;
  channel_ear heard(common_server(), w.channel);
  CHECK(w.permits.try_set_permits(2));
  CHECK(heard.next() == "2");
  CHECK_FALSE(w.permits.try_set_permits(9));
  CHECK(w.free() == "2");
  auto const eternal = w.permits.acquire();
  auto const before = w.admin.now_ms();
  auto const leased = w.permits.acquire(60s);
  auto const after = w.admin.now_ms();
  CHECK(is_id(eternal));
  CHECK(is_id(leased));
  CHECK(w.free() == "0");
  auto const taken = w.taken();
  REQUIRE(taken.size() == 2);
  CHECK(taken.at(eternal) == score_of_no_lease);
  CHECK(std::stoll(taken.at(leased)) >= before + 60'000);
  CHECK(std::stoll(taken.at(leased)) <= after + 60'001);  // the end is rounded up
  CHECK_FALSE(w.permits.try_acquire());
  w.permits.release(eternal);
  CHECK(heard.next() == "1");
  CHECK(w.permits.try_release(leased));
  CHECK(heard.next() == "2");
  CHECK(w.free() == "2");
  CHECK(w.admin.integer("EXISTS", w.timeouts) == 0);
}

TEST_CASE("permit semaphore: ids are unique over clients and calls", "[server][kind]") {
  permit_world w;
  client other(common_server().uri(), steady_config());
  w.permits.try_set_permits(100);
  std::set<std::string> ids;
  for (int i = 0; i < 50; ++i) {
    ids.insert(w.permits.acquire());
    ids.insert(other.get_permit_semaphore(w.name).acquire());
  }
  CHECK(ids.size() == 100);
  CHECK(w.permits.acquired_permits() == 100);
  // Anybody who knows an id may release it.
  for (auto const& id : ids) CHECK(w.permits.try_release(id));
  CHECK(w.permits.available_permits() == 100);
}

TEST_CASE("permit semaphore: releasing twice, or what was never taken, is found", "[server][kind]") {
  permit_world w;
  w.permits.try_set_permits(1);
  auto const id = w.permits.acquire();
  w.permits.release(id);
  CHECK_FALSE(w.permits.try_release(id));
  CHECK(error_of([&] { w.permits.release(id); }) == errc::lease_lost);
  CHECK(error_in(w.permits.async_release(id, asio::use_future)) == errc::lease_lost);
  CHECK_FALSE(w.permits.update_lease_time(id, 1s));
  CHECK(w.free() == "1");
}

TEST_CASE("permit semaphore: an ended lease gives its permit back by itself, and says so", "[server][kind]") {
  permit_world w;
  w.permits.try_set_permits(1);
  channel_ear heard(common_server(), w.channel);
  auto const id = w.permits.acquire(brief_lease);
  REQUIRE(wait_until([&] { return w.permits.available_permits() == 1; }));
  CHECK(heard.next() == "1");
  CHECK(w.taken().empty());
  CHECK(w.permits.acquired_permits() == 0);
  CHECK_FALSE(w.permits.try_release(id));
  CHECK(w.free() == "1");
}

TEST_CASE("permit semaphore: a waiter goes on when the next lease ends, with nobody to tell him", "[server][kind]") {
  permit_world w;
  client other(common_server().uri(), steady_config());
  w.permits.try_set_permits(2);
  auto const kept = w.permits.acquire();
  static_cast<void>(w.permits.acquire(brief_lease));
  stopwatch since;
  auto const id = other.get_permit_semaphore(w.name).try_acquire(patience);
  CHECK(id.has_value());
  CHECK(since.passed() < 5s);
  CHECK(w.permits.acquired_permits() == 2);
  CHECK(w.taken().contains(kept));
}

TEST_CASE("permit semaphore: a waiter is woken by a release of another client", "[server][kind]") {
  permit_world w;
  client other(common_server().uri(), steady_config());
  auto const theirs = other.get_permit_semaphore(w.name);
  theirs.try_set_permits(1);
  auto const id = theirs.acquire();
  auto waiter = w.permits.async_acquire(asio::use_future);
  REQUIRE(w.log.wait_for(event_type::waiting, w.name));
  theirs.release(id);
  auto const mine = value_of(std::move(waiter));
  CHECK(w.taken().contains(mine));
}

TEST_CASE("permit semaphore: a lease can be made longer and shorter", "[server][kind]") {
  permit_world w;
  w.permits.try_set_permits(1);
  auto const id = w.permits.acquire();
  CHECK(w.permits.update_lease_time(id, 60s));
  CHECK(w.taken().at(id) != score_of_no_lease);
  CHECK(w.permits.update_lease_time(id, 20ms));
  CHECK(wait_until([&] { return w.permits.available_permits() == 1; }));
}

TEST_CASE("permit semaphore: the number of all permits can be set and changed while some are taken", "[server][kind]") {
  permit_world w;
  channel_ear heard(common_server(), w.channel);
  w.permits.set_permits(3);
  CHECK(heard.next() == "3");
  std::vector<std::string> ids;
  for (int i = 0; i < 3; ++i) ids.push_back(w.permits.acquire());
  w.permits.set_permits(1);
  CHECK(heard.next() == "1");
  CHECK(w.free() == "-2");
  CHECK(w.permits.available_permits() == -2);
  w.permits.release(ids[0]);
  w.permits.release(ids[1]);
  CHECK_FALSE(w.permits.try_acquire());
  w.permits.release(ids[2]);
  CHECK(w.free() == "1");
  CHECK(heard.next() == "-1");
  CHECK(heard.next() == "0");
  CHECK(heard.next() == "1");
  w.permits.add_permits(4);
  CHECK(heard.next() == "4");
  CHECK(w.free() == "5");
  w.permits.add_permits(-5);
  CHECK(w.free() == "0");
}

TEST_CASE("permit semaphore: what is never lawful is refused before anything is sent (case 14)", "[server][kind]") {
  permit_world w;
  w.permits.try_set_permits(1);
  auto const before = w.own.snapshot().scripts;
  for (auto const& wrong : {std::string(), std::string("x"), std::string(31, 'a'), std::string(33, 'a'),
                            std::string(32, 'g'), std::string(16, '\0')}) {
    CHECK(error_of([&] { w.permits.release(wrong); }) == errc::bad_argument);
    CHECK(error_of([&] { return w.permits.try_release(wrong); }) == errc::bad_argument);
    CHECK(error_of([&] { return w.permits.update_lease_time(wrong, 1s); }) == errc::bad_argument);
  }
  std::string const id(32, 'a');
  for (auto wrong : {0ms, -1ms, milliseconds::min(), milliseconds::max()}) {
    CHECK(error_of([&] { return w.permits.acquire(wrong); }) == errc::bad_argument);
    CHECK(error_of([&] { return w.permits.try_acquire(1s, wrong); }) == errc::bad_argument);
    CHECK(error_of([&] { return w.permits.update_lease_time(id, wrong); }) == errc::bad_argument);
    CHECK(error_of([&] { return w.permits.acquire_permit({.lease = wrong}); }) == errc::bad_argument);
  }
  CHECK(error_of([&] { return w.permits.acquire_permit({.max_hold = 1s}); }) == errc::bad_argument);
  CHECK(error_of([&] { return w.permits.try_set_permits(-1); }) == errc::bad_argument);
  CHECK(error_of([&] { w.permits.set_permits(-1); }) == errc::bad_argument);
  CHECK(w.own.snapshot().scripts == before);
  CHECK(error_of([&] { return w.own.get_permit_semaphore(""); }) == errc::bad_argument);
}

TEST_CASE(
    "permit semaphore: a key of another type and a value that is no number are errors that change nothing "
    "(case 26)",
    "[server][kind]") {
  permit_world w;
  std::string const id(32, 'a');
  auto const check_all = [&](errc expected) {
    CHECK(error_of([&] { return w.permits.try_acquire(); }) == expected);
    CHECK(error_of([&] { return w.permits.try_release(id); }) == expected);
    CHECK(error_of([&] { return w.permits.available_permits(); }) == expected);
    CHECK(error_of([&] { return w.permits.acquired_permits(); }) == expected);
    CHECK(error_of([&] { w.permits.set_permits(3); }) == expected);
    CHECK(error_of([&] { w.permits.add_permits(3); }) == expected);
    CHECK(error_of([&] { return w.permits.update_lease_time(id, 1s); }) == expected);
  };
  w.admin.ok("HSET", w.name, "a", "1");
  check_all(errc::wrong_type);
  w.admin.ok("DEL", w.name);
  w.admin.ok("SET", w.name, "many");
  check_all(errc::server_error);
  CHECK(w.free() == "many");
  w.admin.ok("SET", w.name, "1");
  w.admin.ok("SET", w.timeouts, "text");
  CHECK(error_of([&] { return w.permits.try_acquire(); }) == errc::wrong_type);
  CHECK(error_of([&] { return w.permits.try_release(id); }) == errc::wrong_type);
  CHECK(w.free() == "1");
}

TEST_CASE("permit semaphore: every key of ours has a time to live (case 35)", "[server][kind]") {
  permit_world w;
  w.permits.set_permits(2);
  w.permits.add_permits(1);
  w.permits.release(w.permits.acquire());
  auto const keys = w.admin.ok("KEYS", "latchkey_*{" + w.name + "}*").elements;
  CHECK(keys.size() == 3);
  for (auto const& key : keys) CHECK(w.admin.integer("PTTL", key.text) > 0);
}

TEST_CASE("permit semaphore: the set of ids takes over the key's time to live", "[server][kind]") {
  permit_world w;
  w.admin.ok("SET", w.name, "2", "PX", "60000");
  static_cast<void>(w.permits.acquire());
  CHECK(w.admin.integer("PTTL", w.timeouts) > 0);
}

TEST_CASE("permit semaphore: permits come back where the server has no memory left or refuses PUBLISH",
          "[server][kind]") {
  private_world w;
  auto const permits = w.own.get_permit_semaphore(w.name);
  permits.try_set_permits(4);
  auto const id = permits.acquire();
  auto one = permits.acquire_permit();
  static_cast<void>(permits.acquire(brief_lease));
  w.admin.ok("CONFIG", "SET", "maxmemory", "1");
  CHECK(wait_until([&] { return permits.available_permits() == 2; }));
  CHECK(error_of([&] { return permits.try_acquire(); }) == errc::server_error);
  permits.release(id);
  CHECK(one.release() == release_result::released);
  w.admin.ok("CONFIG", "SET", "maxmemory", "0");
  CHECK(w.admin.text("GET", w.name) == "4");
  w.admin.ok("ACL", "SETUSER", "default", "-publish");
  permits.release(permits.acquire());
  CHECK(w.admin.text("GET", w.name) == "4");
  CHECK(w.log.wait_for(event_type::publish_refused, w.name));
}

TEST_CASE("permit semaphore: blocking, future and coroutine callers", "[server][kind]") {
  permit_world w;
  w.permits.try_set_permits(2);
  run_coro(take_and_give(w.permits));
  auto const id = value_of(w.permits.async_acquire(asio::use_future));
  CHECK(value_of(w.permits.async_try_release(id, asio::use_future)));
  std::promise<permit> called;
  w.permits.async_acquire_permit([&called](error_code, permit one) { called.set_value(std::move(one)); });
  CHECK(value_of(called.get_future()).held());
  CHECK(wait_until([&] { return w.permits.acquired_permits() == 0; }));
}

TEST_CASE("permit semaphore: handles of one name and client compare equal", "[server][kind]") {
  permit_world w;
  CHECK((w.permits == w.own.get_permit_semaphore(w.name) && w.permits.name() == w.name));
  CHECK_FALSE(w.permits == w.own.get_permit_semaphore(new_name()));
}

// The permit that gives itself back: move-only, with a lease, told when it is lost.

TEST_CASE("permit semaphore: a permit releases itself, in its destructor and when it is asked to", "[server][kind]") {
  permit_world w;
  w.permits.try_set_permits(2);
  {
    permit one = w.permits.acquire_permit();
    permit two = w.permits.acquire_permit({.lease = 60s});
    CHECK(one);
    CHECK(one.held());
    CHECK(one.remaining() > 1'000h);
    CHECK(two.remaining() <= 60s);
    CHECK(w.taken().at(one.id()) == score_of_no_lease);
    CHECK(w.taken().contains(two.id()));
    CHECK(w.own.snapshot().held == 2);
    permit three = w.permits.acquire_permit({.wait = brief_wait});
    CHECK_FALSE(three);
    CHECK(three.id().empty());
    CHECK(one.release() == release_result::released);
    CHECK_FALSE(one);
    CHECK(one.release() == release_result::expired);
    three = std::move(two);
    CHECK(three.held());
  }
  CHECK(wait_until([&] { return w.free() == "2"; }));
  CHECK(w.own.snapshot().held == 0);
  CHECK(w.log.count_after(w.own, event_type::lost) == 0);
}

TEST_CASE("permit semaphore: a permit learns that its lease has ended or that it was taken away", "[server][kind]") {
  permit_world w;
  w.permits.try_set_permits(2);
  permit one = w.permits.acquire_permit({.lease = brief_lease});
  std::promise<error_code> told;
  one.on_lost([&](error_code why) { told.set_value(why); });
  CHECK(value_of(told.get_future()) == errc::lease_lost);
  CHECK(one.lost().stop_requested());
  CHECK_FALSE(one.held());
  CHECK(one.release() == release_result::expired);
  permit two = w.permits.acquire_permit({.lease = 60s});
  CHECK(two.extend(90s));
  CHECK(two.remaining() > 60s);
  CHECK(w.permits.try_release(two.id()));
  CHECK_FALSE(two.extend(90s));
  CHECK_FALSE(two.held());
}

TEST_CASE("permit semaphore: a permit whose wait is stopped is empty, and nothing is taken", "[server][kind]") {
  permit_world w;
  w.permits.try_set_permits(0);
  std::stop_source stop;
  auto waiter =
      std::async(std::launch::async, [&] { return static_cast<bool>(w.permits.acquire_permit({}, stop.get_token())); });
  REQUIRE(w.log.wait_for(event_type::waiting, w.name));
  stop.request_stop();
  CHECK_FALSE(waiter.get());
  asio::cancellation_signal cancel;
  auto other = w.permits.async_acquire(asio::bind_cancellation_slot(cancel.slot(), asio::use_future));
  REQUIRE(wait_until([&] { return w.own.snapshot().waiting == 1; }));
  cancel.emit(asio::cancellation_type::total);
  CHECK(error_in(std::move(other)) == asio::error::operation_aborted);
  w.permits.add_permits(1);
  CHECK(w.permits.try_acquire());
}

TEST_CASE("permit semaphore: closing tells permits, and awaits their release", "[server][kind]") {
  permit_world w;
  w.permits.try_set_permits(2);
  permit one = w.permits.acquire_permit();
  auto const other = w.permits.acquire();
  auto closing = std::async(std::launch::async, [&] { w.own.close(); });
  REQUIRE(wait_until([&] { return !one.held(); }));
  CHECK(w.free() == "0");
  w.permits.release(other);
  CHECK(one.release() == release_result::released);
  closing.wait();
  CHECK(w.free() == "2");
}
