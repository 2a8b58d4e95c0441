// How a holder learns that its hold is lost.
#include <latchkey/latchkey.hpp>
#include <support/catch.hpp>
#include <support/errors.hpp>
#include <support/run_coro.hpp>
#include <support/worlds.hpp>

#include <boost/asio/use_awaitable.hpp>

#include <atomic>
#include <future>
#include <memory>
#include <stdexcept>
#include <stop_token>
#include <thread>

using namespace latchkey;
using namespace latchkey::test;

namespace {

// Renews every second or so: soon enough to see a loss, late enough not to lose anything on a slow machine.
config watched(event_log const& log) {
  auto settings = steady_config(log);
  settings.lock_watchdog_timeout = 3s * slowness;
  return settings;
}

struct watched_world {
  event_log log;
  raw_redis admin = common_server().admin();
  client own{common_server().uri(), watched(log)};
  distributed_lock lock = own.get_lock(new_name());

  void take_away() { admin.ok("DEL", lock.name()); }
};

}  // namespace

TEST_CASE("a lost hold asks its token to stop, tells its callback why, and is an event", "[server][contract]") {
  watched_world w;
  lease held = w.lock.acquire();
  std::promise<error_code> told;
  held.on_lost([&](error_code why) { told.set_value(why); });
  std::stop_token const token = held.lost();
  CHECK_FALSE(token.stop_requested());
  w.take_away();
  auto why = told.get_future();
  REQUIRE(why.wait_for(patience) == std::future_status::ready);
  CHECK(why.get() == errc::lease_lost);
  CHECK(wait_until([&] { return token.stop_requested(); }));
  CHECK(w.log.wait_for(event_type::lost, w.lock.name()));
  CHECK(w.log.last(event_type::lost)->owner == held.owner());
  CHECK(held);
  CHECK_FALSE(held.held());
  CHECK(held.remaining() == 0ms);
  CHECK(held.release() == release_result::expired);
  CHECK(w.own.snapshot().lost == 1);
}

TEST_CASE("a later on_lost callback replaces an earlier one, and each is called at most once", "[server][contract]") {
  watched_world w;
  std::atomic<int> first{0};
  std::atomic<int> second{0};
  lease held = w.lock.acquire();
  held.on_lost([&] { ++first; });
  held.on_lost([&, proof = std::make_unique<int>(1)] { second += *proof; });
  w.take_away();
  CHECK(wait_until([&] { return second == 1; }));
  CHECK(first == 0);
}

TEST_CASE("an on_lost callback moves with its lease", "[server][contract]") {
  watched_world w;
  std::promise<void> told;
  lease first = w.lock.acquire();
  first.on_lost([&] { told.set_value(); });
  lease second = std::move(first);
  lease third;
  third = std::move(second);
  w.take_away();
  CHECK(told.get_future().wait_for(patience) == std::future_status::ready);
  CHECK(third);
}

TEST_CASE("on_lost of a hold that is lost already is called at once, on the client's executor", "[server][contract]") {
  asio::io_context io;
  client own(io, common_server().uri(), steady_config());
  auto held = run_coro(io, own.get_lock(new_name()).async_acquire({.lease = brief_lease}, asio::use_awaitable));
  CHECK(run_until(io, [&] { return held.lost().stop_requested(); }));
  bool called = false;
  held.on_lost([&] {
    CHECK(io.get_executor().running_in_this_thread());
    called = true;
  });
  CHECK_FALSE(called);
  CHECK(run_until(io, [&] { return called; }));
}

TEST_CASE("on_lost is never called for a release", "[server][contract]") {
  watched_world w;
  std::atomic<int> called{0};
  lease held = w.lock.acquire();
  auto const token = held.lost();
  held.on_lost([&] { ++called; });
  CHECK(held.release() == release_result::released);
  {
    lease dropped = w.lock.acquire();
    dropped.on_lost([&] { ++called; });
  }
  // A later hold of the same client that is really lost: what was told before it would have been told by now.
  lease last = w.lock.acquire();
  std::promise<void> told;
  last.on_lost([&] { told.set_value(); });
  w.take_away();
  CHECK(told.get_future().wait_for(patience) == std::future_status::ready);
  CHECK(called == 0);
  CHECK_FALSE(token.stop_requested());
}

TEST_CASE("after release has returned no callback runs, however close the loss was", "[server][contract]") {
  event_log log;
  client own(common_server().uri(), steady_config(log));
  std::atomic<int> late{0};
  for (int i = 0; i < 10; ++i) {
    auto const lock = own.get_lock(new_name());
    auto alive = std::make_shared<std::atomic<bool>>(true);
    lease held = lock.acquire({.lease = brief_lease});
    held.on_lost([alive, &late] { late += !*alive; });
    while (held.remaining() > 1ms) std::this_thread::yield();
    static_cast<void>(held.release());
    *alive = false;
  }
  own.close();
  CHECK(late == 0);
}

TEST_CASE("closing the client is a loss with the reason closed", "[server][contract]") {
  auto own = std::make_unique<client>(common_server().uri(), steady_config());
  lease held = own->get_lock(new_name()).acquire();
  std::promise<error_code> told;
  held.on_lost([&](error_code why) { told.set_value(why); });
  own->close();
  auto why = told.get_future();
  REQUIRE(why.wait_for(patience) == std::future_status::ready);
  CHECK(why.get() == errc::closed);
  CHECK(held.lost().stop_requested());
  CHECK_FALSE(held.held());
  CHECK(error_of([&] { return held.release(); }) == errc::closed);
}

TEST_CASE("a stop callback on lost() may use the client", "[server][contract]") {
  watched_world w;
  lease held = w.lock.acquire();
  std::promise<error_code> asked;
  std::stop_callback const callback(
      held.lost(), [&] { w.lock.async_is_locked([&](error_code error, bool) { asked.set_value(error); }); });
  w.take_away();
  auto result = asked.get_future();
  REQUIRE(result.wait_for(patience) == std::future_status::ready);
  CHECK_FALSE(result.get());
}

TEST_CASE("an exception from on_lost is an event and does no harm", "[server][contract]") {
  watched_world w;
  lease held = w.lock.acquire();
  held.on_lost([] { throw std::runtime_error("from a callback"); });
  w.take_away();
  CHECK(w.log.wait_for(event_type::callback_failed));
  static_cast<void>(held.release());
  CHECK(w.lock.try_lock());
  w.lock.unlock();
}
