// What the relatives of the reentrant lock cost, and what they do with bad inputs and a server that refuses.
#include <latchkey/latchkey.hpp>
#include <support/catch.hpp>
#include <support/command_counter.hpp>
#include <support/errors.hpp>
#include <support/relatives.hpp>
#include <support/run_coro.hpp>

#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>

#include <future>
#include <map>
#include <string>
#include <vector>

// GCC 12 inlines how Asio allocates the frame of a coroutine, but not how it frees it, and warns of the difference.
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"

using namespace latchkey;
using namespace latchkey::test;

namespace {

config without_pings() {
  auto settings = steady_config();
  settings.ping_interval = 0ms;
  return settings;
}

using counts = std::map<std::string, int>;

// Clients of this server come by TCP, so that the counter tells them from the test itself.
struct counted_relatives : private_world {
  explicit counted_relatives(relative which)
      : private_world(without_pings(), {.tcp = true}), lock((own.*which.get)("counted")) {}

  command_counter counter{server};
  distributed_lock lock;

  bool warmed_up() {
    auto const pair = [&] {
      lock.lock();
      lock.unlock();
      value_of(lock.async_acquire(asio::use_future)).release();
      return counter.take() == counts{{"EVALSHA", 4}};
    };
    return wait_until([&] { return pair() && pair() && pair(); });
  }
};

}  // namespace

TEST_CASE("family: one EVALSHA per free acquire and one per last release", "[server][kind]") {
  relative const which = any_relative();
  INFO(which);
  counted_relatives w(which);
  REQUIRE(w.warmed_up());
  constexpr int rounds = 100;
  for (int i = 0; i < rounds; ++i) {
    w.lock.lock();
    w.lock.unlock();
  }
  CHECK(w.counter.take() == counts{{"EVALSHA", 2 * rounds}});
  for (int i = 0; i < rounds; ++i) {
    lease held = value_of(w.lock.async_acquire(asio::use_future));
    CHECK(value_of(held.async_release(asio::use_future)) == release_result::released);
  }
  CHECK(w.counter.take() == counts{{"EVALSHA", 2 * rounds}});
  auto const me = owner::make();
  for (int i = 0; i < rounds; ++i) {
    run_coro(w.lock.async_lock(me, asio::use_awaitable));
    run_coro(w.lock.async_unlock(me, asio::use_awaitable));
  }
  CHECK(w.counter.take() == counts{{"EVALSHA", 2 * rounds}});
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
  relative const which = any_relative();
  INFO(which);
  private_world w;
  auto const lock = (w.own.*which.get)("held");
  auto const free = (w.own.*which.get)("free");
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
  relative const which = any_relative();
  INFO(which);
  client own(common_server().uri());
  CHECK(error_of([&] { (own.*which.get)(""); }) == errc::bad_argument);
  CHECK(error_of([&] { (own.*which.get)(std::string(70'000, 'x')); }) == errc::bad_argument);
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
