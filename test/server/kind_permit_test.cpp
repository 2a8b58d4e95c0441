// The permit that gives itself back: move-only, with a lease, told when it is lost.
#include <latchkey/latchkey.hpp>
#include <support/catch.hpp>
#include <support/errors.hpp>
#include <support/permit_world.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/use_future.hpp>

#include <future>
#include <vector>

using namespace latchkey;
using namespace latchkey::test;

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
    CHECK(w.taken().at(one.id()) == never);
    CHECK(w.taken().contains(two.id()));
    CHECK(w.own.snapshot().held == 2);
    permit three = w.permits.acquire_permit({.wait = 10ms});
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
  event_log::catch_up(w.own);
  CHECK(w.log.count(event_type::lost) == 0);
}

TEST_CASE("permit semaphore: a permit learns that its lease has ended or that it was taken away", "[server][kind]") {
  permit_world w;
  w.permits.try_set_permits(2);
  permit one = w.permits.acquire_permit({.lease = 200ms});
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
