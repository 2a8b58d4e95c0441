// Cases 80 to 82, 89 and 90: the life of clients and operations.
#include <latchkey/latchkey.hpp>
#include <support/catch.hpp>
#include <support/errors.hpp>
#include <support/fault_proxy.hpp>
#include <support/run_coro.hpp>
#include <support/worlds.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>

#include <algorithm>
#include <atomic>
#include <future>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

using namespace latchkey;
using namespace latchkey::test;

namespace {

std::unique_ptr<client> new_client(std::string const& uri, config settings = steady_config()) {
  return std::make_unique<client>(uri, std::move(settings));
}

}  // namespace

TEST_CASE("case 80: a client that goes away ends what waits with closed and leaves what is held to its lease",
          "[server][case-80]") {
  common_world w;
  auto settings = steady_config();
  settings.close_timeout = 200ms;
  auto own = new_client(common_server().uri(), settings);
  auto const lock = own->get_lock(w.name);
  auto const held_lock = own->get_lock(new_name());
  lease held = held_lock.acquire();
  auto const own_lock = own->get_lock(new_name());
  own_lock.lock();
  w.lock.lock();
  auto blocking = std::async(std::launch::async, [&] { return error_of([&] { lock.lock(); }); });
  auto future = lock.async_lock(owner::make(), asio::use_future);
  std::atomic<int> called{0};
  lock.async_acquire([&](error_code error, lease) { called += error == errc::closed; });
  REQUIRE(wait_until([&] { return own->snapshot().waiting == 3; }));
  own.reset();
  CHECK(value_of(std::move(blocking)) == errc::closed);
  CHECK(error_in(std::move(future)) == errc::closed);
  CHECK(wait_until([&] { return called == 1; }));
  CHECK_FALSE(held.held());
  CHECK(w.admin.integer("EXISTS", held_lock.name()) == 1);
  CHECK(w.admin.integer("EXISTS", own_lock.name()) == 0);
  CHECK(w.lock.is_held_by_current_thread());
  CHECK(wait_until([&] { return w.admin.listeners(w.name) == 0; }));
  w.lock.unlock();
}

TEST_CASE("case 80: a client may go away while it connects", "[server][case-80]") {
  fault_proxy proxy(common_server().where());
  proxy.silent(true);
  auto own = new_client(proxy.uri());
  auto future = own->get_lock("lock").async_lock(owner::make(), asio::use_future);
  REQUIRE(wait_until([&] { return proxy.accepted() > 0; }));
  own.reset();
  CHECK(error_in(std::move(future)) == errc::closed);
}

TEST_CASE("case 80: a client may go away in a handler of its own thread", "[server][case-80]") {
  auto admin = common_server().admin();
  auto const name = new_name();
  auto own = new_client(common_server().uri());
  auto const lock = own->get_lock(name);
  bool failed = false;
  std::promise<void> gone;
  lock.async_acquire([&](error_code error, lease held) {
    failed = error || failed;
    own.reset();
    failed = held.held() || failed;
    gone.set_value();
  });
  CHECK(gone.get_future().wait_for(patience) == std::future_status::ready);
  CHECK_FALSE(failed);
  CHECK(wait_until([&] { return admin.integer("EXISTS", name) == 0; }));
}

TEST_CASE("case 80: a client may go away in a handler on the caller's context, after any number of steps",
          "[server][case-80]") {
  auto admin = common_server().admin();
  // Steps of the context are handlers of all kinds: of sockets, timers and callers.
  for (int steps = 0; steps < 40; ++steps) {
    INFO("after " << steps << " handlers");
    auto const name = new_name();
    asio::io_context io;
    auto own = std::make_unique<client>(io, common_server().uri(), steady_config());
    auto const lock = own->get_lock(name);
    int completed = 0;
    for (int i = 0; i < 3; ++i) lock.async_acquire([&](error_code, lease) { ++completed; });
    for (int i = 0; i < steps && io.run_one_for(5ms) == 1; ++i) continue;
    if (steps % 2 == 0) own.reset();
    io.restart();
    asio::post(io, [&] { own.reset(); });
    CHECK(run_until(io, [&] { return completed == 3; }));
    io.restart();
    io.run_for(patience);
    CHECK(io.stopped());
    CHECK(completed == 3);
    CHECK(wait_until([&] { return admin.integer("PTTL", name) <= 30'000; }));
    admin.ok("DEL", name);
  }
}

TEST_CASE("case 80: what waits on the caller's context goes with it, after any number of steps", "[server][case-80]") {
  common_world w;
  w.lock.lock();
  for (int steps = 0; steps < 40; ++steps) {
    INFO("after " << steps << " handlers");
    auto const kept = std::make_shared<int>(steps);
    std::weak_ptr<int> const left = kept;
    {
      asio::io_context io;
      auto own = std::make_shared<client>(io, common_server().uri(), steady_config());
      // The handler owns the client, as the frame of a coroutine does.
      own->get_lock(w.name).async_acquire([own, kept](error_code, lease) {});
      own.reset();
      for (int i = 0; i < steps && io.run_one_for(5ms) == 1; ++i) continue;
    }
    CHECK(left.use_count() == 1);
  }
  w.lock.unlock();
}

TEST_CASE("case 80: no callback comes after close has returned", "[server][case-80]") {
  // The lease is still held when the client goes away, which waits for it for so long.
  config settings = steady_config();
  settings.close_timeout = 50ms;
  for (int i = 0; i < 20; ++i) {
    auto const alive = std::make_shared<std::atomic<bool>>(true);
    std::atomic<int> late{0};
    auto own = new_client(common_server().uri(), settings);
    auto const lock = own->get_lock(new_name());
    lease held = lock.acquire();
    held.on_lost([&, alive] { late += !*alive; });
    for (int k = 0; k < 5; ++k) lock.async_lock(owner::make(), [&, alive](error_code) { late += !*alive; });
    own.reset();
    *alive = false;
    CHECK(late == 0);
  }
}

namespace {

// Runs `start` on a context of its own and cancels it after `steps` handlers. Returns whether it had ended before.
// Whatever happened: one completion, no hold that nobody owns, no listener, no waiter.
struct cancelled_run {
  bool ended_before = false;
  std::optional<error_code> result;
};

cancelled_run cancel_after(int steps, common_world& w, distributed_lock const& held_elsewhere) {
  asio::io_context io;
  event_log log;
  client own(io, common_server().uri(), steady_config(log));
  auto const lock = own.get_lock(held_elsewhere.name());
  cancelled_run run;
  int completions = 0;
  bool granted = false;
  asio::cancellation_signal signal;
  held_elsewhere.lock();
  bool released = false;
  {
    lease mine;
    lock.async_acquire(asio::bind_cancellation_slot(signal.slot(), [&](error_code error, lease got) {
      ++completions;
      run.result = error;
      granted = got.held();
      mine = std::move(got);
    }));
    for (int i = 0; i < steps && completions == 0; ++i) {
      io.restart();
      io.run_one_for(20ms);
      if (!released && log.count(event_type::waiting) > 0) {
        held_elsewhere.unlock();
        released = true;
      }
    }
    run.ended_before = completions == 1;
    signal.emit(asio::cancellation_type::total);
    CHECK(run_until(io, [&] { return completions == 1; }));
    CHECK((granted ? *run.result == error_code{} : *run.result == asio::error::operation_aborted));
    if (!released) held_elsewhere.unlock();
    if (granted) CHECK(w.admin.hash(lock.name()).size() == 1);
  }
  CHECK(run_until(io, [&] { return w.admin.integer("EXISTS", lock.name()) == 0; }));
  CHECK(run_until(io, [&] { return w.admin.listeners(lock.name()) == 0; }));
  auto const seen = own.snapshot();
  CHECK(seen.held == 0);
  CHECK(seen.waiting == 0);
  CHECK(seen.in_doubt == 0);
  CHECK(completions == 1);
  return run;
}

}  // namespace

TEST_CASE("case 81: an operation cancelled at any step completes once and leaves nothing behind", "[server][case-81]") {
  common_world w;
  for (int steps = 0; steps < 200; ++steps) {
    INFO("cancelled after " << steps << " handlers");
    auto const run = cancel_after(steps, w, w.own.get_lock(new_name()));
    if (!run.ended_before) continue;
    // Cancelling after success changes nothing.
    CHECK(*run.result == error_code{});
    CHECK(steps > 3);
    return;
  }
  FAIL("the operation never ended by itself");
}

TEST_CASE("case 82: an exception from a handler leaves through run(), and the client works on", "[server][case-82]") {
  asio::io_context io;
  auto settings = steady_config();
  settings.lock_watchdog_timeout = 3s * slowness;
  client own(io, common_server().uri(), settings);
  lease other = run_coro(io, own.get_lock(new_name()).async_acquire(asio::use_awaitable));
  auto const lock = own.get_lock(new_name());
  auto const me = owner::make();
  lock.async_lock(me, [](error_code) { throw std::runtime_error("from a handler"); });
  CHECK_THROWS_WITH(run_until(io, [] { return false; }), "from a handler");
  CHECK(run_coro(io, lock.async_is_held_by(me, asio::use_awaitable)));
  lease brief = run_coro(io, own.get_lock(new_name()).async_acquire({.lease = brief_lease}, asio::use_awaitable));
  brief.on_lost([] { throw std::runtime_error("from on_lost"); });
  CHECK_THROWS_WITH(run_until(io, [] { return false; }), "from on_lost");
  auto const before = own.snapshot().renewals;
  CHECK(run_until(io, [&] { return own.snapshot().renewals >= before + 2; }));
  CHECK(other.held());
  run_coro(io, lock.async_unlock(me, asio::use_awaitable));
}

TEST_CASE("case 82: an exception from a handler on the client's own thread is an event", "[server][case-82]") {
  common_world w;
  w.lock.async_lock(owner::make(), [](error_code) { throw std::runtime_error("from a handler"); });
  CHECK(w.log.last(event_type::callback_failed).text.find("from a handler") != std::string::npos);
  CHECK(w.lock.is_locked());
  CHECK(w.lock.force_unlock());
}

TEST_CASE("case 89: a hundred thousand locks of one client are renewed in time, in batches", "[server][case-89]") {
  constexpr int count = 100'000 / (slowness * slowness);
  private_world w([] {
    auto settings = steady_config();
    settings.lock_watchdog_timeout = 9s;
    settings.close_timeout = 10s;
    return settings;
  }());
  auto const me = owner::make();
  std::atomic<int> held{0};
  std::atomic<int> failed{0};
  for (int i = 0; i < count; ++i)
    w.own.get_lock("lock-" + std::to_string(i)).async_lock(me, [&](error_code error) { ++(error ? failed : held); });
  REQUIRE(wait_until([&] { return held + failed == count; }, patience * 4));
  REQUIRE(failed == 0);
  auto const renewals = w.own.snapshot().renewals;
  auto const scripts = w.own.snapshot().scripts;
  REQUIRE(wait_until([&] { return w.own.snapshot().renewals >= renewals + count; }));
  // In batches of a hundred at most, so that no script holds up the server, and hardly more of them than needed.
  auto const calls = w.own.snapshot().scripts - scripts;
  constexpr int under_way = 256;  // at most, when they were counted first
  CHECK(calls + under_way >= count / 100);
  CHECK(calls <= 2 * count / 100 + 200);
  // All were renewed, and nobody's lease has ended.
  CHECK(w.log.count_after(w.own, event_type::lost) == 0);
  CHECK(w.own.snapshot().held == count);
  std::int64_t least = 9'000;
  for (int i = 0; i < count; i += 997) least = std::min(least, w.admin.integer("PTTL", "lock-" + std::to_string(i)));
  CHECK(least > 0);
}

TEST_CASE("case 90: ten thousand waiters of one client cost one subscription, and one message is one try",
          "[server][case-90]") {
  constexpr int count = 10'000;
  common_world w;
  w.lock.lock();
  event_log log;
  auto own = new_client(common_server().uri(), steady_config());
  auto const lock = own->get_lock(w.name);
  std::atomic<int> closed{0};
  std::atomic<int> others{0};
  for (int i = 0; i < count; ++i)
    lock.async_lock(owner::make(), [&](error_code error) { ++(error == errc::closed ? closed : others); });
  REQUIRE(wait_until([&] { return own->snapshot().waiting == count; }));
  REQUIRE(wait_until([&] { return w.admin.listeners(w.name) == 1; }));
  CHECK(own->snapshot().subscriptions == 1);
  // Two tries: the first, and the one after the subscription was confirmed.
  REQUIRE(wait_until([&] { return own->snapshot().scripts >= 2; }));
  auto const commands = own->snapshot().commands;
  auto const scripts = own->snapshot().scripts;
  for (int i = 1; i <= 5; ++i) {
    w.admin.ok("PUBLISH", channel_of(w.name), "0");
    REQUIRE(wait_until([&] { return own->snapshot().scripts == scripts + static_cast<unsigned>(i); }));
  }
  CHECK(own->snapshot().commands == commands + 5);
  own.reset();
  CHECK(wait_until([&] { return closed == count; }));
  CHECK(others == 0);
  w.lock.unlock();
}
