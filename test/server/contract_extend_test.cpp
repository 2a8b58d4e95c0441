// extend and max_hold: how a holder changes the length of its lease.
#include <latchkey/latchkey.hpp>
#include <support/catch.hpp>
#include <support/errors.hpp>
#include <support/run_coro.hpp>
#include <support/worlds.hpp>

#include <boost/asio/use_future.hpp>

using namespace latchkey;
using namespace latchkey::test;

namespace {

milliseconds ttl(common_world& w) { return milliseconds(w.admin.integer("PTTL", w.name)); }

}  // namespace

TEST_CASE("extend gives the hold a lease of this length from now", "[server][contract]") {
  common_world w;
  lease held = w.lock.acquire({.lease = 5s});
  auto const before = clock::now();
  CHECK(held.extend(50s));
  CHECK(held.valid_until() >= before + 50s - 5ms);
  CHECK(ttl(w) > 40s);
  CHECK(held.extend(10s));
  CHECK(held.remaining() <= 10s);
  CHECK(ttl(w) <= 10s);
  CHECK(held.async_extend(20s, asio::use_future).get());
  CHECK(held.remaining() > 10s);
}

TEST_CASE("extend ends the renewal of a watchdog hold", "[server][contract]") {
  event_log log;
  auto settings = quick_config(log);
  settings.lock_watchdog_timeout = 2s * slowness;
  client own(common_server().uri(), settings);
  auto const lock = own.get_lock(new_name());
  lease held = lock.acquire();
  CHECK(held.extend(300ms));
  CHECK(log.wait_for(event_type::lost, lock.name()));
  CHECK_FALSE(held.held());
  CHECK(wait_until([&] { return !lock.is_locked(); }));
}

TEST_CASE("extend never shortens what other holds of the owner need", "[server][contract]") {
  common_world w;
  lease renewed = w.lock.acquire();
  lease fixed = w.lock.acquire({.lease = 10s, .owner = renewed.owner()});
  CHECK(fixed.extend(5s));
  CHECK(fixed.remaining() <= 5s);
  CHECK(ttl(w) > 20s);
  CHECK(renewed.remaining() > 20s);
}

TEST_CASE("extend of a lost hold says false", "[server][contract]") {
  common_world w;
  lease held = w.lock.acquire({.lease = 20s});
  w.admin.ok("DEL", w.name);
  CHECK_FALSE(held.extend(10s));
  CHECK_FALSE(held.held());
  CHECK(wait_until([&] { return held.lost().stop_requested(); }));

  lease brief = w.lock.acquire({.lease = brief_lease});
  CHECK(wait_until([&] { return !brief.held(); }));
  CHECK_FALSE(brief.extend(10s));
  CHECK(ttl(w) <= brief_lease);
  CHECK(wait_until([&] { return !w.lock.is_locked(); }, 2s * slowness));  // the server counts from a later moment
}

TEST_CASE("extend refuses a length that is no lease and leaves the hold alone", "[server][contract]") {
  common_world w;
  lease held = w.lock.acquire({.lease = 20s});
  CHECK(error_of([&] { return held.extend(0ms); }) == errc::bad_argument);
  CHECK(error_of([&] { return held.extend(-1s); }) == errc::bad_argument);
  CHECK(error_of([&] { return held.extend(milliseconds::max()); }) == errc::bad_argument);
  CHECK(held.held());
  CHECK(held.remaining() > 5s);
}

TEST_CASE("max_hold ends the hold, and says so", "[server][contract]") {
  event_log log;
  client own(common_server().uri(), quick_config(log));
  auto const lock = own.get_lock(new_name());
  stopwatch since;
  lease held = lock.acquire({.max_hold = 300ms});
  CHECK(log.wait_for(event_type::max_hold_reached, lock.name()));
  CHECK(log.wait_for(event_type::lost, lock.name()));
  CHECK(since.passed() >= 300ms);
  CHECK_FALSE(held.held());
  CHECK(wait_until([&] { return !lock.is_locked(); }));
}

TEST_CASE("max_hold goes neither with a lease nor without a length", "[server][contract]") {
  common_world w;
  CHECK(error_of([&] { return w.lock.acquire({.lease = 1s, .max_hold = 5s}); }) == errc::bad_argument);
  CHECK(error_of([&] { return w.lock.acquire({.max_hold = 0ms}); }) == errc::bad_argument);
  CHECK_FALSE(w.lock.is_locked());
}
