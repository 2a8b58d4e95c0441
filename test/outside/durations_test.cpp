// Waits and leases in any unit.
#include <outside/outsider.hpp>
#include <support/catch.hpp>
#include <support/errors.hpp>

#include <boost/asio/use_future.hpp>

#include <chrono>
#include <future>
#include <optional>

using namespace latchkey;
using namespace latchkey::outside;
using latchkey::test::error_of;
using latchkey::test::value_of;

namespace {

namespace asio = boost::asio;
using fraction = std::chrono::duration<double>;
using days = std::chrono::duration<int, std::ratio<86'400>>;

constexpr auto endless = std::chrono::hours::max();

// What the server shows of a lease that was just given.
void check_lease(std::string const& name, milliseconds length) {
  auto const shown = shared_server().pttl(name);
  CHECK(shown <= length);
  CHECK(shown > length - 10s);
}

// A wait of a moment: no, or on a busy machine that there was no answer in time.
template <class Call>
void check_in_vain(Call const& call) try {
  CHECK_FALSE(call());
} catch (boost::system::system_error const& error) {
  CHECK(error.code() == errc::timeout);
}

}  // namespace

TEST_CASE_METHOD(one_lock, "a lease may be given in any unit", "[outside][duration]") {
  CHECK(lock.acquire({.wait = 0.5s, .lease = 59'999'500us}).remaining() <= 60s);
  lock.lock(fraction(60.25));
  check_lease(name, 60'250ms);
  lock.unlock();
  REQUIRE(lock.try_lock(1.5s, 2min));
  check_lease(name, 2min);
  lock.unlock();
  lease held = lock.acquire({.lease = 1.5min});
  check_lease(name, 90s);
  REQUIRE(held.extend(days(1)));
  check_lease(name, 24h);
  CHECK(value_of(held.async_extend(fraction(100'000), asio::use_future)));
  check_lease(name, 100'000s);
}

TEST_CASE_METHOD(one_lock, "a wait may be given in any unit", "[outside][duration]") {
  auto const theirs = second.get_lock(name);
  theirs.lock();
  ours.connect();
  check_in_vain([&] { return lock.try_lock(300us); });
  check_in_vain([&] { return lock.try_lock(fraction(0.001)); });
  check_in_vain([&] { return lock.try_lock_for(0.001s); });
  check_in_vain([&] { return bool(lock.acquire({.wait = 1500us})); });
  check_in_vain([&] { return lock.async_try_lock(owner::make(), 0.001s, asio::use_future).get(); });
  check_in_vain([&] { return lock.async_try_lock(owner::make(), 700us, 1min, asio::use_future).get(); });
  check_in_vain([&] { return lock.as_mutex().try_lock_for(300us); });
  theirs.unlock();
}

TEST_CASE_METHOD(one_lock, "a wait below zero is one attempt", "[outside][duration]") {
  auto const theirs = second.get_lock(name);
  theirs.lock();
  for (timespan const wait : {timespan(-1ms), timespan(-0.0001s), timespan(-endless), timespan(0us)}) {
    CHECK_FALSE(lock.try_lock(wait));
    CHECK_FALSE(lock.acquire({.wait = wait}));
  }
  theirs.unlock();
  CHECK(lock.try_lock(-endless));
  lock.unlock();
}

TEST_CASE_METHOD(one_lock, "a wait that fits no clock is for ever", "[outside][duration]") {
  auto const theirs = second.get_lock(name);
  owner const other = owner::make();
  theirs.async_lock(other, asio::use_future).get();
  auto granted = lock.async_acquire({.wait = endless}, asio::use_future);
  auto locked = lock.async_try_lock(owner::make(), fraction(1e300), 1min, asio::use_future);
  theirs.async_unlock(other, asio::use_future).get();
  CHECK(value_of(std::move(granted)).release() == release_result::released);
  CHECK(value_of(std::move(locked)));
}

TEST_CASE_METHOD(one_lock, "a lease of nothing and an endless one are refused", "[outside][duration]") {
  for (timespan const length : {timespan(0us), timespan(-800us), timespan(-endless), timespan(endless)}) {
    CHECK(error_of([&] { lock.lock(length); }) == errc::bad_argument);
    CHECK(error_of([&] { return lock.try_lock(1s, length); }) == errc::bad_argument);
    CHECK(error_of([&] { return lock.acquire({.lease = length}); }) == errc::bad_argument);
    CHECK(test::error_in(lock.async_lock(owner::make(), length, asio::use_future)) == errc::bad_argument);
  }
  CHECK_FALSE(shared_server().exists(name));
  CHECK(lock.acquire({.max_hold = endless}));
}

TEST_CASE_METHOD(two_clients, "semaphores and latches take any unit, too", "[outside][duration]") {
  ours.connect(endless);
  auto const permits = ours.get_semaphore(name);
  check_in_vain([&] { return bool(permits.try_acquire(1, 300us)); });
  check_in_vain([&] { return bool(permits.try_acquire_for(0.001s)); });
  check_in_vain([&] { return permits.async_try_acquire(1, 0.001s, asio::use_future).get(); });
  check_in_vain([&] { return permits.async_try_acquire_for(-1s, asio::use_future).get(); });

  auto const leased = ours.get_permit_semaphore(fresh_name());
  leased.set_permits(1);
  auto const id = leased.try_acquire(0.5s, 1.5min);
  REQUIRE(id);
  check_in_vain([&] { return bool(leased.try_acquire(300us)); });
  check_in_vain([&] { return bool(leased.acquire_permit({.wait = 0.001s, .lease = 800us})); });
  CHECK(leased.update_lease_time(*id, fraction(60.5)));
  CHECK(value_of(leased.async_update_lease_time(*id, 60'500'000us, asio::use_future)));
  CHECK(error_of([&] { leased.update_lease_time(*id, endless); }) == errc::bad_argument);
  leased.release(*id);
  CHECK(leased.acquire(1.5min).size() == 32);

  auto const latch = ours.get_count_down_latch(fresh_name());
  REQUIRE(latch.try_set_count(1));
  check_in_vain([&] { return bool(latch.wait_for(300us)); });
  check_in_vain([&] { return latch.async_wait_for(0.001s, asio::use_future).get(); });
  latch.count_down();
  CHECK(latch.wait_for(endless));
}
