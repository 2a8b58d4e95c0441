// The multi lock: who calls it and how, cancellation, and the end of clients.
#include <latchkey/latchkey.hpp>
#include <support/catch.hpp>
#include <support/errors.hpp>
#include <support/run_coro.hpp>
#include <support/worlds.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>

#include <future>

using namespace latchkey;
using namespace latchkey::test;

namespace {

// Two locks of two clients of one server, joined by the first client.
struct pair_world : common_world {
  client second{common_server().uri(), steady_config(log)};
  client stranger{common_server().uri(), steady_config()};
  std::string other_name = new_name();
  distributed_lock other = second.get_lock(other_name);
  distributed_lock all = own.get_multi_lock({lock, other});

  bool nothing_held() {
    return wait_until([&] { return admin.integer("EXISTS", name, other_name) == 0; });
  }
};

}  // namespace

TEST_CASE("multi lock: with handlers, coroutines and futures", "[server][multi]") {
  pair_world w;
  auto const me = owner::make();
  w.all.async_lock(me, asio::use_future).get();
  CHECK(w.all.async_is_held_by(me, asio::use_future).get());
  CHECK(w.all.async_hold_count(me, asio::use_future).get() == 1);
  w.all.async_unlock(me, asio::use_future).get();
  CHECK_FALSE(w.all.async_is_locked(asio::use_future).get());
  CHECK(w.all.async_try_lock(me, 1s, 5s, asio::use_future).get());
  CHECK_FALSE(w.all.async_try_lock(owner::make(), asio::use_future).get());
  w.all.async_unlock(me, asio::use_future).get();
  CHECK(error_in(w.all.async_unlock(me, asio::use_future)) == errc::not_owner);
  CHECK(error_in(w.all.async_force_unlock(asio::use_future)) == errc::bad_argument);
  CHECK(error_in(w.all.async_remaining_time_to_live(asio::use_future)) == errc::bad_argument);

  run_coro([](pair_world& world) -> asio::awaitable<void> {
    auto held = co_await world.all.async_acquire(asio::use_awaitable);
    CHECK(held.held());
    bool const extended = co_await held.async_extend(20s, asio::use_awaitable);
    CHECK(extended);
    auto const found = co_await held.async_release(asio::use_awaitable);
    CHECK(found == release_result::released);
  }(w));

  std::promise<error_code> done;
  w.all.async_lock(me, 5s, [&](error_code code) { done.set_value(code); });
  CHECK_FALSE(done.get_future().get());
  w.all.async_unlock(me, asio::use_future).get();
  CHECK(w.nothing_held());
}

TEST_CASE("multi lock: under with_lock a body is cancelled when a member is lost", "[server][multi]") {
  client own(common_server().uri(), quick_config());
  auto admin = common_server().admin();
  std::string const a = new_name(), b = new_name();
  auto const all = own.get_multi_lock({own.get_lock(a), own.get_lock(b)});
  auto const body = [&](lease& held) -> asio::awaitable<int> {
    CHECK(held.held());
    admin.ok("DEL", b);
    asio::steady_timer timer(co_await asio::this_coro::executor, patience);
    co_await timer.async_wait(asio::use_awaitable);
    co_return 1;
  };
  CHECK(error_in(with_lock(all, body, asio::use_future)) == errc::lease_lost);
  CHECK(wait_until([&] { return admin.integer("EXISTS", a, b) == 0; }));
}

TEST_CASE("multi lock: a cancelled wait leaves nothing held", "[server][multi]") {
  pair_world w;
  auto const theirs = w.stranger.get_lock(w.other_name);
  theirs.lock();
  asio::cancellation_signal signal;
  std::promise<error_code> done;
  std::atomic<int> calls{0};
  w.all.async_acquire(asio::bind_cancellation_slot(signal.slot(), [&](error_code code, lease held) {
    CHECK_FALSE(held);
    if (calls++ == 0) done.set_value(code);
  }));
  REQUIRE(w.log.wait_for(event_type::waiting, w.other_name));
  signal.emit(asio::cancellation_type::total);
  CHECK(done.get_future().get() == asio::error::operation_aborted);
  theirs.unlock();
  CHECK(w.nothing_held());
  CHECK(calls == 1);
  CHECK(w.second.snapshot().waiting == 0);
}

TEST_CASE("multi lock: a stop token ends a blocking wait with an empty lease", "[server][multi]") {
  pair_world w;
  auto const theirs = w.stranger.get_lock(w.name);
  theirs.lock();
  std::stop_source stop;
  auto waiter = std::async(std::launch::async, [&] { return static_cast<bool>(w.all.acquire({}, stop.get_token())); });
  REQUIRE(w.log.wait_for(event_type::waiting, w.name));
  stop.request_stop();
  CHECK_FALSE(waiter.get());
  theirs.unlock();
  CHECK(w.nothing_held());
}

TEST_CASE("multi lock: cancelled again and again in the middle it never keeps a member", "[server][multi]") {
  pair_world w;
  for (int i = 0; i < 60; ++i) {
    asio::cancellation_signal signal;
    std::promise<bool> done;
    w.all.async_acquire(asio::bind_cancellation_slot(
        signal.slot(), [&](error_code, lease held) { done.set_value(static_cast<bool>(held)); }));
    std::this_thread::sleep_for(std::chrono::microseconds(13 * i));
    std::promise<void> emitted;
    asio::dispatch(w.own.get_executor(), [&] {
      signal.emit(asio::cancellation_type::total);
      emitted.set_value();
    });
    emitted.get_future().get();
    done.get_future().get();
  }
  CHECK(w.nothing_held());
  CHECK(wait_until([&] { return w.own.snapshot().held + w.second.snapshot().held == 0; }));
}

TEST_CASE("multi lock: the wait bounds the whole call, also where nobody runs the executor", "[server][multi]") {
  pair_world w;
  asio::io_context idle;
  client unrun(idle, common_server().uri(), steady_config());
  auto const dead = w.own.get_multi_lock({w.lock, unrun.get_lock(w.other_name)});
  stopwatch since;
  CHECK(error_of([&] { static_cast<void>(dead.try_lock(100ms)); }) == errc::timeout);
  CHECK(since.passed() < 5s * slowness);
  CHECK(w.nothing_held());
  auto const joined = unrun.get_multi_lock({w.lock, w.other});
  auto const theirs = w.stranger.get_lock(w.other_name);
  theirs.lock();
  CHECK_FALSE(joined.try_lock(50ms));
  theirs.unlock();
  CHECK(joined.try_lock(5s));
  joined.unlock();
}

TEST_CASE("multi lock: blocking calls inside the executor of any member are refused", "[server][multi]") {
  pair_world w;
  auto const tried = [&](client& where) {
    std::promise<error_code> done;
    asio::post(where.get_executor(), [&] { done.set_value(error_of([&] { w.all.lock(); })); });
    return done.get_future().get();
  };
  CHECK(tried(w.own) == errc::would_deadlock);
  CHECK(tried(w.second) == errc::would_deadlock);
  CHECK(w.nothing_held());
  w.other.lock();  // this thread holds a member
  CHECK(error_of([&] { static_cast<void>(w.all.acquire()); }) == errc::would_deadlock);
  CHECK_FALSE(w.all.acquire({.wait = 300ms * slowness}));
  CHECK(w.all.acquire({.owner = owner::this_thread()}));
  w.other.unlock();
  CHECK(w.nothing_held());
}

TEST_CASE("multi lock: the end of the joining client is a loss and ends its waits", "[server][multi]") {
  pair_world w;
  auto joining = std::make_unique<client>(common_server().uri(), steady_config());
  auto const all = joining->get_multi_lock({w.lock, w.other});
  auto held = all.acquire();
  auto waiting = all.async_acquire(asio::use_future);
  REQUIRE(w.log.wait_for(event_type::waiting));
  std::promise<error_code> why;
  held.on_lost([&](error_code code) { why.set_value(code); });
  joining.reset();
  CHECK(error_in(std::move(waiting)) == errc::closed);
  CHECK(why.get_future().get() == errc::closed);
  CHECK_FALSE(held.held());
  CHECK(w.admin.integer("EXISTS", w.name, w.other_name) == 2);
  CHECK(error_of([&] { all.lock(); }) == errc::closed);
  CHECK(error_of([&] { held.release(); }) == errc::closed);
  CHECK(wait_until([&] { return w.nothing_held(); }));
}

TEST_CASE("multi lock: the end of a member's client is a loss of all", "[server][multi]") {
  pair_world w;
  auto held = w.all.acquire();
  std::promise<error_code> why;
  held.on_lost([&](error_code code) { why.set_value(code); });
  auto closing = std::async(std::launch::async, [&] { w.second.close(); });
  CHECK(why.get_future().get() == errc::closed);
  CHECK_FALSE(held.held());
  CHECK(w.admin.integer("EXISTS", w.name, w.other_name) == 2);
  CHECK(held.release() == release_result::released);
  closing.wait();
  CHECK(w.nothing_held());
  CHECK(error_of([&] { w.all.lock(); }) == errc::closed);
}

TEST_CASE("multi lock: a dropped lease and a destroyed handler give everything back", "[server][multi]") {
  pair_world w;
  { auto const held = w.all.acquire(); }
  CHECK(w.nothing_held());
  for (int i = 0; i < 20; ++i) {
    auto first = w.all.acquire();
    REQUIRE(first);
    first = lease();
    auto again = w.all.acquire({.wait = 5s});
    REQUIRE(again);
  }
  {
    asio::io_context io;
    w.all.async_acquire(asio::bind_executor(io, [](error_code, lease) {}));
    REQUIRE(wait_until([&] { return w.own.snapshot().held == 1 && w.second.snapshot().held == 1; }));
    // The way of the handler: the thread that heard the last answer, then that of the joining client.
    asio::post(w.second.get_executor(), asio::use_future).get();
    asio::post(w.own.get_executor(), asio::use_future).get();
  }
  CHECK(w.nothing_held());
}

TEST_CASE("multi lock: standard guards", "[server][multi]") {
  pair_world w;
  {
    auto const mutex = w.all.as_mutex();
    std::lock_guard const lock(mutex);
    CHECK(w.all.is_held_by_current_thread());
  }
  {
    std::unique_lock const lock(w.all, std::defer_lock);
    CHECK_FALSE(lock.owns_lock());
  }
  CHECK(w.nothing_held());
}
