// lock_delay and progress_within, as callers see them.
#include <outside/outsider.hpp>
#include <support/catch.hpp>
#include <support/configs.hpp>
#include <support/errors.hpp>
#include <support/event_log.hpp>

#include <boost/asio/use_future.hpp>

#include <future>
#include <string>

using namespace latchkey;
using namespace latchkey::outside;
using latchkey::test::error_of;

TEST_CASE_METHOD(one_lock, "a lock delay keeps others out after the lease is over", "[outside][lease]") {
  lease held = lock.acquire({.lease = 1min, .lock_delay = 5min});
  CHECK(held.remaining() <= 1min);
  CHECK(shared_server().pttl(name) > 5min);
  CHECK(shared_server().pttl(name) <= 6min);
  CHECK(held.extend(2min));
  CHECK(held.remaining() <= 2min);
  CHECK(shared_server().pttl(name) > 6min);
  CHECK(held.release() == release_result::released);
  CHECK_FALSE(shared_server().exists(name));

  auto future = std::promise<error_code>();
  lease lost = lock.acquire({.lease = test::brief_lease, .lock_delay = 5min});
  lost.on_lost([&](error_code why) { future.set_value(why); });
  CHECK(test::value_of(future.get_future()) == errc::lease_lost);
  CHECK(lost.release() == release_result::expired);
  CHECK_FALSE(second.get_lock(name).try_lock());
  CHECK(shared_server().pttl(name) > 4min);
  CHECK(lock.force_unlock());
}

TEST_CASE("work that hangs loses its lock, and work that goes on does not", "[outside][lease]") {
  test::event_log log;
  client own(shared_server().uri(), {.lock_watchdog_timeout = 1500ms * test::slowness, .on_event = log.callback()});
  auto const other = own.get_lock(fresh_name());
  auto const lock = own.get_lock(fresh_name());
  auto const joined = own.get_multi_lock({other, own.get_lock(fresh_name())});
  lease going = joined.acquire({.progress_within = 1min});
  lease hanging = lock.acquire({.progress_within = 1ms, .context = 5});
  hanging.progress();
  REQUIRE(log.wait_for(event_type::lost, lock.name()));
  CHECK_FALSE(hanging.held());
  CHECK(log.last(event_type::warning).context == 5);
  CHECK(log.last(event_type::warning).text.find("no progress") != std::string::npos);
  going.progress();
  CHECK(going.held());
  lease().progress();
}

TEST_CASE_METHOD(one_lock, "options that do not go together are refused", "[outside][lease]") {
  auto const refused = [&](distributed_lock const& which, acquire_options options) {
    CHECK(error_of([&] { return which.acquire(options); }) == errc::bad_argument);
    CHECK(test::error_in(which.async_acquire(options, asio::use_future)) == errc::bad_argument);
  };
  refused(lock, {.lock_delay = -1ms});
  refused(lock, {.lock_delay = std::chrono::hours::max()});
  refused(lock, {.progress_within = 0s});
  refused(lock, {.progress_within = -1ms});
  refused(lock, {.lease = 1s, .progress_within = 1s});
  refused(ours.get_multi_lock({lock}), {.lock_delay = 1s});
  CHECK_FALSE(shared_server().exists(name));
  auto const pool = ours.get_permit_semaphore(fresh_name());
  CHECK(error_of([&] { return pool.acquire_permit({.lock_delay = 1s}); }) == errc::bad_argument);
  CHECK(error_of([&] { return pool.acquire_permit({.progress_within = 1s}); }) == errc::bad_argument);
  CHECK(lock.acquire({.lock_delay = 0s, .progress_within = std::chrono::hours::max()}));
}
