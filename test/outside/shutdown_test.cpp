// What close() does to those who hold: told first, and never freed under a body that still works.
#include <outside/outsider.hpp>
#include <support/catch.hpp>
#include <support/errors.hpp>
#include <support/event_log.hpp>
#include <support/run_coro.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>

#include <atomic>
#include <future>
#include <thread>

using namespace latchkey;
using namespace latchkey::outside;
using namespace latchkey::test;

namespace {

config closing_within(milliseconds time, event_log const& log) {
  return {.close_timeout = time, .on_event = log.callback()};
}

}  // namespace

TEST_CASE("close() tells a holder, waits for him, and his release frees the lock", "[outside][edge-5]") {
  server& redis = shared_server();
  event_log log;
  client ours(redis.uri(), closing_within(patience, log));
  client second(redis.uri());
  auto const name = fresh_name();
  lease held = ours.get_lock(name).acquire();
  auto waiter = ours.get_lock(name).async_lock(owner::make(), asio::use_future);
  std::promise<error_code> told;
  held.on_lost([&](error_code why) { told.set_value(why); });
  auto closing = std::async(std::launch::async, [&] { ours.close(); });
  CHECK(value_of(told.get_future()) == errc::closed);
  CHECK(error_in(std::move(waiter)) == errc::closed);
  CHECK(held.lost().stop_requested());
  CHECK_FALSE(held.held());
  CHECK(closing.wait_for(0s) == std::future_status::timeout);
  CHECK_FALSE(second.get_lock(name).try_lock());
  CHECK(error_of([&] { return ours.get_lock(name).try_lock(); }) == errc::closed);
  CHECK(held.release() == release_result::released);
  closing.get();
  CHECK(second.get_lock(name).try_lock());
  CHECK(log.count(event_type::left_to_lease) == 0);
}

TEST_CASE("what is held to the end of close() is left to its lease, and an event says for how long",
          "[outside][edge-5]") {
  server& redis = shared_server();
  event_log log;
  auto const name = fresh_name(), theirs = fresh_name(), mine = fresh_name();
  lease held;
  {
    client ours(redis.uri(), closing_within(1s * slowness, log));
    held = ours.get_lock(name).acquire({.lease = 20s});
    std::thread([&] { ours.get_lock(theirs).lock(20s); }).join();
    ours.get_lock(mine).lock();
  }
  CHECK_FALSE(held.held());
  CHECK_FALSE(redis.exists(mine));
  for (auto const& one : {name, theirs}) {
    CHECK(redis.exists(one));
    CHECK(log.count(event_type::left_to_lease, one) == 1);
  }
  auto const left = log.last(event_type::left_to_lease);
  CHECK(left.took > 0s);
  CHECK(left.took <= 20s);
  CHECK(error_of([&] { held.release(); }) == errc::closed);
  CHECK(redis.exists(name));
}

TEST_CASE("close() cancels the bodies of with_lock and frees their locks when they have ended", "[outside][edge-5]") {
  server& redis = shared_server();
  event_log log;
  asio::io_context io;
  client ours(io, redis.uri(), closing_within(patience, log));
  client second(redis.uri());
  auto const name = fresh_name();
  bool body_ended = false;
  bool free_under_the_body = false;
  error_code ended;
  asio::co_spawn(
      io,
      [&]() -> asio::awaitable<void> {
        auto body = [&](lease&) -> asio::awaitable<void> {
          asio::steady_timer timer(co_await asio::this_coro::executor, 1h);
          try {
            co_await timer.async_wait(asio::use_awaitable);
          } catch (boost::system::system_error const&) {
          }
          co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
          timer.expires_after(50ms);  // what the body has to clear away
          co_await timer.async_wait(asio::use_awaitable);
          free_under_the_body = second.get_lock(name).try_lock();
          body_ended = true;
        };
        try {
          co_await with_lock(ours.get_lock(name), body, asio::use_awaitable);
        } catch (lock_error const& problem) {
          ended = problem.code();
        }
      },
      [](std::exception_ptr problem) {
        if (problem) std::rethrow_exception(problem);
      });
  REQUIRE(run_until(io, [&] { return log.count(event_type::granted, name) == 1; }));
  ours.close();  // on a thread that runs the executor at other times: it does not wait
  CHECK_FALSE(body_ended);
  auto closed = ours.async_close(asio::use_future);
  REQUIRE(run_until(io, [&] { return closed.wait_for(0s) == std::future_status::ready; }));
  CHECK(body_ended);
  CHECK_FALSE(free_under_the_body);
  CHECK(ended == errc::closed);
  CHECK(second.get_lock(name).try_lock());
  CHECK(log.count(event_type::left_to_lease) == 0);
}

TEST_CASE("an owner without a lease may still unlock while close() waits for another", "[outside][edge-5]") {
  server& redis = shared_server();
  event_log log;
  client ours(redis.uri(), closing_within(patience, log));
  auto const name = fresh_name(), other = fresh_name();
  auto const me = owner::make();
  ours.get_lock(name).async_lock(me, asio::use_future).get();
  lease held = ours.get_lock(other).acquire();
  auto closing = std::async(std::launch::async, [&] { ours.close(); });
  REQUIRE(wait_until([&] { return !held.held(); }));
  CHECK_FALSE(error_in(ours.get_lock(name).async_unlock(me, asio::use_future)));
  CHECK_FALSE(redis.exists(name));
  CHECK(redis.exists(other));
  held = lease();
  closing.get();
  CHECK_FALSE(redis.exists(other));
}

TEST_CASE("close() of a joint lock's client waits for its lease, too", "[outside][edge-5]") {
  server& redis = shared_server();
  event_log log;
  client members(redis.uri());
  client ours(redis.uri(), closing_within(patience, log));
  auto const name = fresh_name(), own = fresh_name();
  lease held = ours.get_multi_lock({members.get_lock(name), ours.get_lock(own)}).acquire();
  auto closing = std::async(std::launch::async, [&] { ours.close(); });
  REQUIRE(wait_until([&] { return held.lost().stop_requested(); }));
  CHECK_FALSE(held.held());
  CHECK(redis.exists(name));
  CHECK(redis.exists(own));
  CHECK(held.release() == release_result::released);
  closing.get();
  CHECK_FALSE(redis.exists(name));
  CHECK_FALSE(redis.exists(own));
}

TEST_CASE("when a member's client closes, members of others last no longer than its close and their leases",
          "[outside][edge-5]") {
  server redis;
  config settings;
  settings.lock_watchdog_timeout = 900ms * slowness;
  settings.close_timeout = 300ms;
  client own(redis.uri(), settings), other(redis.uri(), settings), third(redis.uri());
  auto const mine = fresh_name(), theirs = fresh_name();
  auto const held = own.get_multi_lock({own.get_lock(mine), other.get_lock(theirs)}).acquire();
  other.close();
  CHECK_FALSE(held.held());
  for (auto const& name : {mine, theirs}) CHECK(third.get_lock(name).try_lock(patience));
}
