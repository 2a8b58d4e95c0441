// What the non-reentrant, the spin, the fenced and the plain lock have in common with the reentrant one, each of them
// on a real server: all three kinds of callers, leases, waits, losses, questions.
#include <latchkey/latchkey.hpp>
#include <support/catch.hpp>
#include <support/errors.hpp>
#include <support/kinds.hpp>
#include <support/redis_server.hpp>
#include <support/run_coro.hpp>
#include <support/worlds.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>

#include <future>
#include <map>
#include <string>
#include <thread>
#include <vector>

// GCC 12 inlines how Asio allocates the frame of a coroutine, but not how it frees it, and warns of the difference.
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"

using namespace latchkey;
using namespace latchkey::test;

namespace {

lock_kind any_relative() {
  static auto const some = [] {
    auto made = lock_kinds();
    std::erase_if(made, [](lock_kind const& one) { return !one.relative; });
    return made;
  }();
  return some[GENERATE(range(std::size_t{0}, some.size()))];
}

// Two clients of the common server and the lock of one name in both.
struct relatives {
  explicit relatives(lock_kind which) : kind(std::move(which)) {}
  lock_kind kind;
  common_world w;
  event_log other_log;
  client other{common_server().uri(), steady_config(other_log)};
  distributed_lock lock = kind.of(w.own, w.name);
  distributed_lock theirs = kind.of(other, w.name);

  bool key_there() { return w.admin.integer("EXISTS", w.name) == 1; }
};

asio::awaitable<void> as_coroutine(distributed_lock lock) {
  auto const me = owner::make();
  auto const you = owner::make();
  co_await lock.async_lock(me);
  check_equal(co_await lock.async_is_locked(), true);
  check_equal(co_await lock.async_is_held_by(me), true);
  check_equal(co_await lock.async_is_held_by(you), false);
  check_equal(co_await lock.async_hold_count(me), 1);
  check_equal(co_await lock.async_hold_count(you), 0);
  check_equal(co_await lock.async_try_lock(you), false);
  check_equal(co_await lock.async_try_lock(you, brief_wait, 5s), false);
  co_await lock.async_unlock(me);
  co_await lock.async_lock(me, 5s);
  auto const left = co_await lock.async_remaining_time_to_live();
  CHECK(left.value() <= 5s);
  check_equal(co_await lock.async_force_unlock(), true);
  check_equal(co_await lock.async_force_unlock(), false);
  check_equal(co_await lock.async_is_locked(), false);
}

}  // namespace

TEST_CASE("family: blocking callers lock, ask and unlock", "[server][kind]") {
  relatives r(any_relative());
  INFO(r.kind);
  auto const& lock = r.lock;
  CHECK_FALSE(lock.is_locked());
  CHECK(lock.remaining_time_to_live() == std::nullopt);
  lock.lock();
  CHECK(lock.is_locked());
  CHECK(lock.is_held_by_current_thread());
  CHECK_FALSE(lock.is_held_by(owner::make()));
  CHECK(lock.hold_count() == 1);
  CHECK(lock.hold_count(owner::make()) == 0);
  CHECK(lock.remaining_time_to_live().value() > 20s);
  CHECK(r.theirs.is_locked());
  CHECK(r.theirs.hold_count() == 0);
  CHECK_FALSE(r.theirs.try_lock());
  CHECK_FALSE(r.theirs.try_lock(brief_wait, 5s));
  lock.unlock();
  CHECK_FALSE(r.key_there());
  CHECK(error_of([&] { lock.unlock(); }) == errc::not_owner);
  REQUIRE(r.theirs.try_lock(1s, 7s));
  CHECK(r.w.admin.integer("PTTL", r.w.name) <= 7'000);
  r.theirs.unlock();
  CHECK(lock == r.kind.of(r.w.own, r.w.name));
  CHECK(lock != r.w.lock);
}

TEST_CASE("family: coroutines, futures and handlers are served as owners whom they name", "[server][kind]") {
  relatives r(any_relative());
  INFO(r.kind);
  run_coro(as_coroutine(r.lock));
  auto const me = owner::make();
  CHECK(error_in(r.lock.async_lock(me, asio::use_future)) == error_code());
  std::promise<error_code> heard;
  r.lock.async_unlock(me, [&](error_code error) { heard.set_value(error); });
  CHECK(value_of(heard.get_future()) == error_code());
  CHECK_FALSE(r.key_there());
}

TEST_CASE("family: a lease is extended, released and given back by its destructor", "[server][kind]") {
  relatives r(any_relative());
  INFO(r.kind);
  lease held = r.lock.acquire({.lease = 5s});
  REQUIRE(held.held());
  CHECK(r.lock.is_held_by(held.owner()));
  CHECK(r.w.admin.integer("PTTL", r.w.name) <= 5'000);
  CHECK(held.extend(60s));
  CHECK(held.remaining() > 50s);
  CHECK(r.w.admin.integer("PTTL", r.w.name) > 50'000);
  CHECK(held.release() == release_result::released);
  CHECK_FALSE(r.key_there());
  { lease const dropped = r.lock.acquire(); }
  lease again = r.lock.acquire({.wait = 0ms});
  CHECK(again.held());
  CHECK(error_of([&] { r.lock.lock(0ms); }) == errc::bad_argument);
  r.w.admin.ok("DEL", r.w.name);
  CHECK_FALSE(again.extend(5s));
  CHECK(again.release() == release_result::expired);
}

TEST_CASE("family: with_lock holds while the body runs, and cancels it when the hold is lost", "[server][kind]") {
  relatives r(any_relative());
  INFO(r.kind);
  asio::io_context io;
  client own(io, common_server().uri(), quick_config());
  auto const lock = r.kind.of(own, r.w.name);
  int const result = run_coro(io, [](distributed_lock l) -> asio::awaitable<int> {
    co_return co_await with_lock(
        l,
        [&](lease& held) -> asio::awaitable<int> {
          check_equal(co_await l.async_is_held_by(held.owner()), true);
          co_return 7;
        },
        asio::use_awaitable);
  }(lock));
  CHECK(result == 7);
  CHECK_FALSE(r.key_there());
  auto const lost = run_coro(io, [](distributed_lock l, raw_redis& admin) -> asio::awaitable<error_code> {
    try {
      co_await with_lock(
          l,
          [&](lease&) -> asio::awaitable<void> {
            admin.ok("DEL", l.name());
            co_await wait_for_ever();
          },
          asio::use_awaitable);
    } catch (lock_error const& error) {
      co_return error.code();
    }
    co_return error_code();
  }(lock, r.w.admin));
  CHECK(lost == errc::lease_lost);
  own.close();
}

TEST_CASE("family: the watchdog keeps a lock without a lease, and a lease ends by itself", "[server][kind]") {
  relatives r(any_relative());
  INFO(r.kind);
  auto settings = quick_config();
  settings.lock_watchdog_timeout = 2s * slowness;
  client own(common_server().uri(), settings);
  auto const lock = r.kind.of(own, r.w.name);
  stopwatch since;
  lock.lock();
  REQUIRE(wait_until([&] { return own.snapshot().renewals >= 4; }));
  CHECK(since.passed() > settings.lock_watchdog_timeout);
  CHECK(lock.is_held_by_current_thread());
  CHECK(lock.remaining_time_to_live().value() <= settings.lock_watchdog_timeout);
  lock.unlock();
  lease brief = lock.acquire({.lease = brief_lease});
  std::promise<void> told;
  brief.on_lost([&] { told.set_value(); });
  CHECK(told.get_future().wait_for(patience) == std::future_status::ready);
  CHECK(brief.lost().stop_requested());
  CHECK_FALSE(brief.held());
  CHECK(wait_until([&] { return !r.key_there(); }));
}

TEST_CASE("family: a waiter gets the lock when another client releases it", "[server][kind]") {
  relatives r(any_relative());
  INFO(r.kind);
  r.theirs.lock();
  auto waiter = std::async(std::launch::async, [&] {
    bool const got = r.lock.try_lock(patience);
    if (got) r.lock.unlock();
    return got;
  });
  REQUIRE(r.w.log.wait_for(event_type::waiting, r.w.name));
  CHECK(r.w.own.snapshot().waiting == 1);
  r.theirs.unlock();
  CHECK(value_of(std::move(waiter)));
  CHECK(r.w.own.snapshot().contended == 1);
  CHECK((r.w.own.snapshot().subscriptions == 1) == r.kind.listens);
}

TEST_CASE("family: a reentrant lock of the name and it keep each other out", "[server][kind]") {
  relatives r(any_relative());
  INFO(r.kind);
  auto const reentrant = r.other.get_lock(r.w.name);
  reentrant.lock();
  if (r.kind.is_string) {  // what it finds is no lock to it
    CHECK(error_of([&] { return r.lock.try_lock(); }) == errc::wrong_type);
    return;
  }
  CHECK_FALSE(r.lock.try_lock());
  auto waiter = r.lock.async_acquire(asio::use_future);
  REQUIRE(r.w.log.wait_for(event_type::waiting, r.w.name));
  reentrant.unlock();
  lease held = value_of(std::move(waiter));
  CHECK(held.fencing_token().has_value() == r.kind.numbered);
  CHECK_FALSE(reentrant.try_lock());
  CHECK(held.release() == release_result::released);
}

TEST_CASE("family: callers of one client pass the lock on", "[server][kind]") {
  auto const kind = any_relative();
  INFO(kind);
  config settings = steady_config();
  settings.local_handoff = {.max_time = 10min, .warm_up = 0};
  client own(common_server().uri(), settings);
  auto const lock = kind.of(own, new_name());
  // On a busy machine its own try may be under way when the lock is released: then nothing is passed on.
  for (int i = 0; i < 5 && own.snapshot().handed_off == 0; ++i) {
    lock.lock();
    auto const scripts = own.snapshot().scripts;
    auto waiter = lock.async_acquire(asio::use_future);
    REQUIRE(wait_until([&] { return own.snapshot().waiting == 1; }));
    // It tries once more when it listens, and is handed nothing meanwhile; the query behind that is answered after it.
    if (kind.listens) REQUIRE(wait_until([&] { return own.snapshot().scripts > scripts; }));
    CHECK(value_of(lock.async_is_locked(asio::use_future)));
    lock.unlock();
    lease next = value_of(std::move(waiter));
    CHECK(next.held());
    CHECK(lock.is_held_by(next.owner()));
    CHECK(next.release() == release_result::released);
  }
  CHECK(own.snapshot().handed_off == 1);
}

TEST_CASE("family: force_unlock removes any holder, and a waiter gets the lock", "[server][kind]") {
  relatives r(any_relative());
  INFO(r.kind);
  CHECK_FALSE(r.lock.force_unlock());
  r.theirs.lock();
  auto waiter = std::async(std::launch::async, [&] {
    bool const got = r.lock.try_lock(patience);
    if (got) r.lock.unlock();
    return got;
  });
  REQUIRE(r.w.log.wait_for(event_type::waiting, r.w.name));
  if (r.kind.listens) REQUIRE(wait_until([&] { return r.w.own.snapshot().subscriptions == 1; }));
  CHECK(r.lock.force_unlock());
  CHECK(value_of(std::move(waiter)));
  CHECK(error_of([&] { r.theirs.unlock(); }) == errc::lease_lost);
}

TEST_CASE("family: a cancelled waiter leaves nothing behind", "[server][kind]") {
  relatives r(any_relative());
  INFO(r.kind);
  r.theirs.lock();
  asio::cancellation_signal stop;
  std::promise<error_code> heard;
  r.lock.async_lock(owner::make(),
                    asio::bind_cancellation_slot(stop.slot(), [&](error_code error) { heard.set_value(error); }));
  REQUIRE(r.w.log.wait_for(event_type::waiting, r.w.name));
  stop.emit(asio::cancellation_type::terminal);
  CHECK(value_of(heard.get_future()) == asio::error::operation_aborted);
  CHECK(r.w.own.snapshot().waiting == 0);
  CHECK(r.theirs.is_held_by_current_thread());
  r.theirs.unlock();
  CHECK_FALSE(r.key_there());
}

TEST_CASE("family: many callers of three clients exclude each other", "[server][kind]") {
  relatives r(any_relative());
  INFO(r.kind);
  client third(common_server().uri(), steady_config());
  constexpr int turns = 60;
  auto const counter = r.w.name + ":turns";
  auto const work = [&](client const& of) {
    auto const lock = r.kind.of(of, r.w.name);
    auto admin = common_server().admin();
    for (int i = 0; i < turns; ++i) {
      lock.lock();
      auto const seen = admin.command("GET", counter).text;
      admin.ok("SET", counter, seen.empty() ? 1 : std::stoi(seen) + 1);
      lock.unlock();
    }
  };
  std::vector<std::future<void>> all;
  std::initializer_list<client const*> const clients{&r.w.own, &r.w.own, &r.other, &r.other, &third};
  for (client const* of : clients) all.push_back(std::async(std::launch::async, work, std::cref(*of)));
  for (auto& one : all) value_of(std::move(one), 4 * patience);
  CHECK(r.w.admin.text("GET", counter) == std::to_string(5 * turns));
  CHECK_FALSE(r.key_there());
}

// What the relatives of the reentrant lock cost, and what they do with bad inputs and a server that refuses.

// GCC 12 inlines how Asio allocates the frame of a coroutine, but not how it frees it, and warns of the difference.
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"

using namespace latchkey;
using namespace latchkey::test;

TEST_CASE("family: one EVALSHA per free acquire and one per last release", "[server][kind]") {
  lock_kind const which = any_relative();
  INFO(which);
  counted_world w;
  auto const lock = which.of(w.own, "counted");
  REQUIRE(w.warmed_up({lock}));
  constexpr int rounds = 100;
  std::map<std::string, int> const one_each{{"EVALSHA", 2 * rounds}};
  for (int i = 0; i < rounds; ++i) {
    lock.lock();
    lock.unlock();
  }
  CHECK(w.counter.take() == one_each);
  for (int i = 0; i < rounds; ++i) {
    lease held = value_of(lock.async_acquire(asio::use_future));
    CHECK(value_of(held.async_release(asio::use_future)) == release_result::released);
  }
  CHECK(w.counter.take() == one_each);
  auto const me = owner::make();
  for (int i = 0; i < rounds; ++i) {
    run_coro(lock.async_lock(me, asio::use_awaitable));
    run_coro(lock.async_unlock(me, asio::use_awaitable));
  }
  CHECK(w.counter.take() == one_each);
}

TEST_CASE("family: case 26: a key of another type is wrong_type and left alone", "[server][kind][case-26]") {
  relatives r(any_relative());
  INFO(r.kind);
  r.w.admin.ok("RPUSH", r.w.name, "something", "else");
  CHECK(error_of([&] { r.lock.lock(); }) == errc::wrong_type);
  CHECK(error_of([&] { return r.lock.try_lock(1s); }) == errc::wrong_type);
  CHECK(error_of([&] { return r.lock.acquire(); }) == errc::wrong_type);
  CHECK(error_of([&] { return r.lock.force_unlock(); }) == errc::wrong_type);
  CHECK(error_of([&] { return r.lock.is_held_by_current_thread(); }) == errc::wrong_type);
  CHECK(error_of([&] { return r.lock.hold_count(); }) == errc::wrong_type);
  CHECK(r.w.admin.integer("LLEN", r.w.name) == 2);
  r.w.admin.ok("DEL", r.w.name);
}

TEST_CASE("family: case 43: when memory is short nobody gets the lock, and a holder can release", "[server][kind]") {
  lock_kind const which = any_relative();
  INFO(which);
  private_world w;
  auto const lock = which.of(w.own, "held");
  auto const free = which.of(w.own, "free");
  lock.lock();
  auto waiter = lock.async_acquire({.wait = patience}, asio::use_future);
  REQUIRE(w.log.wait_for(event_type::waiting, "held"));
  w.admin.ok("CONFIG", "SET", "maxmemory", 1);
  auto const refused = thrown_by([&] { return free.try_lock(); });
  CHECK(refused.server_text().find("OOM") != std::string::npos);
  lock.unlock();
  w.admin.ok("CONFIG", "SET", "maxmemory", 0);
  lease next = value_of(std::move(waiter));
  CHECK(next.held());
  CHECK(lock.is_held_by(next.owner()));
  CHECK(w.admin.integer("EXISTS", "free") == 0);
}

TEST_CASE("family: bad names are refused by every getter", "[server][kind]") {
  lock_kind const which = any_relative();
  INFO(which);
  client own(common_server().uri());
  CHECK(error_of([&] { which.of(own, ""); }) == errc::bad_argument);
  CHECK(error_of([&] { which.of(own, std::string(70'000, 'x')); }) == errc::bad_argument);
}

TEST_CASE("family: an owner who holds a name is refused it through another kind of the same client", "[server][kind]") {
  relatives r(any_relative());
  INFO(r.kind);
  auto const& lock = r.w.lock;  // the reentrant one of the same name
  lock.lock();
  auto const before = r.w.own.snapshot().scripts;
  auto const refused = thrown_by([&] { r.lock.lock(); });
  CHECK(refused.code() == errc::bad_argument);
  CHECK(r.w.own.snapshot().scripts == before);
  CHECK(lock.hold_count() == 1);
  lock.unlock();
  r.lock.lock();
  CHECK(error_of([&] { lock.lock(); }) == errc::bad_argument);
  r.lock.unlock();
  CHECK_FALSE(r.key_there());
}
