// The multi lock: lists of members, good and bad, and what may be asked of it.
#include <latchkey/latchkey.hpp>
#include <support/catch.hpp>
#include <support/errors.hpp>
#include <support/redis_server.hpp>
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
#include <map>
#include <vector>

using namespace latchkey;
using namespace latchkey::test;

TEST_CASE("multi lock: the questions", "[server][multi]") {
  trio w;
  auto const me = owner::make();
  CHECK_FALSE(w.all.is_locked());
  CHECK(w.all.hold_count(me) == 0);
  auto held = w.all.acquire({.owner = me});
  auto more = w.members[1].acquire({.owner = me});
  CHECK(w.all.is_locked());
  CHECK(w.all.is_held_by(me));
  CHECK(w.all.hold_count(me) == 1);
  CHECK_FALSE(w.all.is_held_by_current_thread());
  CHECK(held.release() == release_result::still_held);
  CHECK_FALSE(w.all.is_locked());  // one of them is
  CHECK_FALSE(w.all.is_held_by(me));
  CHECK(error_of([&] { w.all.force_unlock(); }) == errc::bad_argument);
  CHECK(error_of([&] { static_cast<void>(w.all.remaining_time_to_live()); }) == errc::bad_argument);
  CHECK(w.all.name() == w.names[0] + "," + w.names[1] + "," + w.names[2]);
}

TEST_CASE("multi lock: equal handles are one lock", "[server][multi]") {
  trio w;
  auto const same = w.own.get_multi_lock(w.members);
  CHECK(same == w.all);
  CHECK(w.own.get_multi_lock({w.members[1], w.members[0], w.members[2]}) != w.all);
  CHECK(w.other.get_multi_lock(w.members) != w.all);
  CHECK(w.own.get_red_lock(w.members) != w.all);
  w.own.get_multi_lock(w.members).lock();
  same.unlock();
  CHECK(w.keys() == 0);
}

TEST_CASE("multi lock: members of different kinds", "[server][multi]") {
  common_world w;
  auto const names = std::vector{new_name(), new_name(), new_name(), new_name(), new_name()};
  auto const rw = w.own.get_read_write_lock(names[4]);
  auto const all =
      w.own.get_multi_lock({w.lock, w.own.get_plain_lock(names[0]), w.own.get_spin_lock(names[1]),
                            w.own.get_fenced_lock(names[2]), w.own.get_non_reentrant_lock(names[3]), rw.write_lock()});
  client other(common_server().uri(), steady_config());
  for (auto const& busy :
       {other.get_plain_lock(names[0]), other.get_spin_lock(names[1]), other.get_fenced_lock(names[2]),
        other.get_non_reentrant_lock(names[3]), other.get_read_write_lock(names[4]).read_lock()}) {
    busy.lock();
    CHECK_FALSE(all.try_lock());
    auto waiter = all.async_acquire(asio::use_future);
    busy.unlock();
    auto held = value_of(std::move(waiter));
    REQUIRE(held.held());
    CHECK(all.is_held_by(held.owner()));
    CHECK(held.fencing_token() == std::nullopt);
    CHECK(held.release() == release_result::released);
    CHECK(w.admin.integer("EXISTS", w.name, names[0], names[1], names[2], names[3], names[4]) == 0);
  }
  all.lock();
  CHECK(error_of([&] { static_cast<void>(all.try_lock()); }) == errc::already_held);  // some are not reentrant
  CHECK(all.hold_count() == 1);
  CHECK(error_of([&] { static_cast<void>(all.get_token()); }) == errc::bad_argument);
  all.unlock();
  CHECK_FALSE(all.is_locked());
}

TEST_CASE("multi lock: relatives of the reentrant lock leave in one script call", "[server][multi]") {
  redis_server server({.tcp = true});
  client own(server.uri(), steady_config());
  auto const all = own.get_multi_lock(
      {own.get_lock("a"), own.get_spin_lock("b"), own.get_non_reentrant_lock("c"), own.get_lock("d")});
  all.lock();
  all.unlock();
  command_counter counter(server);
  counter.take();
  all.lock();
  CHECK(counter.take() == std::map<std::string, int>{{"EVALSHA", 1}});
  all.unlock();
}

TEST_CASE("A13: multi lock: bad lists", "[server][multi]") {
  trio w;
  CHECK(error_of([&] { w.own.get_multi_lock({}); }) == errc::bad_argument);
  auto gone = w.members[0];
  auto const kept = std::move(gone);
  CHECK(error_of([&] { w.own.get_multi_lock({kept, gone}); }) == errc::bad_argument);
  std::vector<distributed_lock> many(257, w.members[0]);
  CHECK(error_of([&] { w.own.get_multi_lock(many); }) == errc::bad_argument);
  CHECK(error_of([&] {
          w.own.get_multi_lock({w.own.get_multi_lock({many.begin(), many.end() - 1}), kept});
        }) == errc::bad_argument);
  CHECK(error_of([&] { w.all.lock(0ms); }) == errc::bad_argument);
  CHECK(error_of([&] { static_cast<void>(w.all.acquire({.lease = 1s, .max_hold = 1s})); }) == errc::bad_argument);
  CHECK(w.keys() == 0);
}

TEST_CASE("A13: multi lock: the same lock twice is entered twice", "[server][multi]") {
  trio w;
  auto const twice = w.own.get_multi_lock({w.members[0], w.members[1], w.members[0]});
  twice.lock();
  CHECK(w.admin.hash(w.names[0]) == fields{{w.field(owner::this_thread()), "2"}});
  CHECK(w.admin.hash(w.names[1]) == fields{{w.field(owner::this_thread()), "1"}});
  twice.unlock();
  CHECK(w.keys() == 0);
  auto const me = owner::make();
  CHECK(twice.acquire({.owner = me}).release() == release_result::released);
  auto other = w.members[0].acquire({.owner = me});
  CHECK(twice.acquire({.owner = me}).release() == release_result::still_held);
  CHECK(other.release() == release_result::released);
  CHECK(w.keys() == 0);
}

TEST_CASE("A13: multi lock: more members than one script call takes", "[server][multi]") {
  common_world w;
  std::vector<distributed_lock> members;
  for (int i = 0; i < 100; ++i) members.push_back(w.own.get_lock(w.name + std::to_string(i)));
  auto const all = w.own.get_multi_lock(members);
  all.lock();
  CHECK(all.is_held_by_current_thread());
  all.unlock();
  CHECK_FALSE(members[99].is_locked());
  client other(common_server().uri(), steady_config());
  other.get_lock(w.name + "77").lock();
  CHECK_FALSE(all.try_lock());
  CHECK(wait_until([&] { return !members[0].is_locked(); }));
  other.get_lock(w.name + "77").unlock();
}

TEST_CASE("multi lock: nested ones hold and give back everything", "[server][multi]") {
  trio w;
  auto const inner = w.own.get_multi_lock({w.members[0], w.members[1]});
  auto const red = w.own.get_red_lock({w.members[2]});
  auto const outer = w.own.get_multi_lock({inner, red});
  CHECK(outer.name() == w.all.name());
  auto held = outer.acquire();
  REQUIRE(held.held());
  CHECK(w.held_by(held.owner()));
  CHECK(outer.is_held_by(held.owner()));
  CHECK(held.extend(60s));
  CHECK(held.remaining() > 30s);
  CHECK_FALSE(w.other.get_lock(w.names[1]).try_lock());
  CHECK(held.release() == release_result::released);
  CHECK(w.keys() == 0);

  auto const theirs = w.other.get_lock(w.names[1]);
  theirs.lock();
  CHECK_FALSE(outer.try_lock(300ms * slowness));
  auto waiter = std::async(std::launch::async, [&] {
    outer.lock();
    outer.unlock();
  });
  REQUIRE(w.log.wait_for(event_type::waiting, w.names[1], 2));
  theirs.unlock();
  CHECK(waiter.wait_for(patience) == std::future_status::ready);
}

TEST_CASE("multi lock: loss in a nested one is loss of all", "[server][multi]") {
  client own(common_server().uri(), quick_config());
  auto admin = common_server().admin();
  std::vector<std::string> const names{new_name(), new_name(), new_name()};
  auto const inner = own.get_multi_lock({own.get_lock(names[0]), own.get_lock(names[1])});
  auto held = own.get_multi_lock({own.get_lock(names[2]), inner}).acquire();
  REQUIRE(held.held());
  admin.ok("DEL", names[0]);
  CHECK(wait_until([&] { return held.lost().stop_requested(); }));
  CHECK(wait_until([&] { return admin.integer("EXISTS", names[0], names[1], names[2]) == 0; }));
}

// The multi lock: who calls it and how, cancellation, and the end of clients.

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
  w.own.connect();
  w.second.connect();
  auto const dead = w.own.get_multi_lock({w.lock, unrun.get_lock(w.other_name)});
  stopwatch since;
  CHECK(error_of([&] { static_cast<void>(dead.try_lock(brief_wait)); }) == errc::timeout);
  CHECK(since.passed() < 5s * slowness);
  CHECK(w.nothing_held());
  auto const joined = unrun.get_multi_lock({w.lock, w.other});
  auto const theirs = w.stranger.get_lock(w.other_name);
  theirs.lock();
  CHECK_FALSE(joined.try_lock(brief_wait));
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
    // The way of the handler: the thread that heard the last answer, then that of the joining client, perhaps again.
    // What they are answered next they look at after that.
    for (int way = 0; way < 3; ++way) {
      w.other.async_is_locked(asio::use_future).get();
      w.lock.async_is_locked(asio::use_future).get();
    }
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
