// Permits without owners: what Redisson's RSemaphore does, and what ours adds.
#include <latchkey/latchkey.hpp>
#include <support/catch.hpp>
#include <support/errors.hpp>
#include <support/redis_server.hpp>
#include <support/run_coro.hpp>
#include <support/worlds.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>

#include <future>
#include <limits>
#include <thread>
#include <vector>

using namespace latchkey;
using namespace latchkey::test;

namespace {

struct semaphore_world : common_world {
  semaphore permits = own.get_semaphore(name);
  std::string channel = "redisson_sc:{" + name + "}";
  std::string claim = "latchkey_semaphore_claim:{" + name + "}";

  std::string value() { return admin.text("GET", name); }
};

// Takes on a thread of its own.
std::future<bool> taking(semaphore const& from, int n, std::chrono::milliseconds wait = patience) {
  return std::async(std::launch::async, [from, n, wait] { return from.try_acquire(n, wait); });
}

bool done(std::future<bool> const& one) { return one.wait_for(0ms) == std::future_status::ready; }

asio::awaitable<void> take_and_give(semaphore permits) {
  co_await permits.async_acquire();
  check_equal(co_await permits.async_try_acquire(2), true);
  check_equal(co_await permits.async_try_acquire(), false);
  check_equal(co_await permits.async_try_acquire(1, brief_wait), false);
  check_equal(co_await permits.async_try_acquire_for(brief_wait), false);
  co_await permits.async_release(2);
  co_await permits.async_release();
  check_equal(co_await permits.async_available_permits(), 3);
  check_equal(co_await permits.async_try_set_permits(9), false);
  co_await permits.async_add_permits(2);
  check_equal(co_await permits.async_drain_permits(), 5);
}

}  // namespace

TEST_CASE("semaphore: it shows as a string with the number of free permits, and tells every change", "[server][kind]") {
  semaphore_world w;
  channel_ear heard(common_server(), w.channel);
  CHECK(w.permits.try_set_permits(3));
  CHECK(w.value() == "3");
  CHECK(heard.next() == "3");
  CHECK_FALSE(w.permits.try_set_permits(5));
  CHECK(w.value() == "3");
  w.permits.acquire();
  w.permits.acquire(2);
  CHECK(w.value() == "0");
  CHECK_FALSE(w.permits.try_acquire());
  w.permits.release(2);
  CHECK(heard.next() == "2");
  w.permits.add_permits(4);
  CHECK(heard.next() == "6");
  CHECK(w.value() == "6");
  w.permits.add_permits(-10);
  CHECK(heard.next() == "-4");
  CHECK(w.permits.available_permits() == -4);
  w.permits.add_permits(9);
  CHECK(w.permits.drain_permits() == 5);
  CHECK(w.value() == "0");
  CHECK(w.permits.drain_permits() == 0);
  CHECK(w.admin.text("TYPE", w.name) == "string");
}

TEST_CASE("semaphore: a drain of more than an int has says the largest one", "[server][kind]") {
  semaphore_world w;
  for (auto const* const many : {"2147483648", "9223372036854775807"}) {
    CHECK(w.admin.text("SET", w.name, many) == "OK");
    CHECK(w.permits.drain_permits() == std::numeric_limits<int>::max());
    CHECK(w.permits.available_permits() == 0);
  }
}

TEST_CASE("semaphore: adding and draining end a time to live, as Redisson's do", "[server][kind]") {
  semaphore_world w;
  w.admin.ok("SET", w.name, "2", "PX", "60000");
  w.permits.add_permits(1);
  CHECK(w.admin.integer("PTTL", w.name) == -1);
  w.admin.ok("SET", w.name, "2", "PX", "60000");
  CHECK(w.permits.drain_permits() == 2);
  CHECK(w.admin.integer("PTTL", w.name) == -1);
  w.admin.ok("SET", w.name, "2", "PX", "60000");
  w.permits.acquire();
  w.permits.release();
  CHECK(w.admin.integer("PTTL", w.name) > 0);
}

TEST_CASE("semaphore: a name without permits has none, and a release makes it", "[server][kind]") {
  semaphore_world w;
  CHECK(w.permits.available_permits() == 0);
  CHECK(w.permits.drain_permits() == 0);
  CHECK_FALSE(w.permits.try_acquire());
  CHECK(w.admin.integer("EXISTS", w.name) == 0);
  w.permits.release(2);
  CHECK(w.value() == "2");
}

TEST_CASE("semaphore: a name with braces keeps its keys in its own slot", "[server][kind]") {
  semaphore_world w;
  auto const permits = w.own.get_semaphore("{" + w.name + "}:a");
  channel_ear heard(common_server(), "redisson_sc:{" + w.name + "}:a");
  permits.release(1);
  CHECK(heard.next() == "1");
  CHECK(w.admin.text("GET", "{" + w.name + "}:a") == "1");
  CHECK(w.admin.ok("KEYS", "latchkey_request:{" + w.name + "}:a:*").elements.size() == 1);
}

TEST_CASE("semaphore: what is never lawful is refused before anything is sent (case 14)", "[server][kind]") {
  semaphore_world w;
  w.permits.try_set_permits(2);
  auto const before = w.own.snapshot().scripts;
  for (int n : {0, -1, std::numeric_limits<int>::min()}) {
    CHECK(error_of([&] { w.permits.acquire(n); }) == errc::bad_argument);
    CHECK(error_of([&] { return w.permits.try_acquire(n); }) == errc::bad_argument);
    CHECK(error_of([&] { return w.permits.try_acquire(n, 1s); }) == errc::bad_argument);
    CHECK(error_of([&] { w.permits.release(n); }) == errc::bad_argument);
    CHECK(error_in(w.permits.async_acquire(n, asio::use_future)) == errc::bad_argument);
    CHECK(error_in(w.permits.async_release(n, asio::use_future)) == errc::bad_argument);
  }
  CHECK(error_of([&] { return w.permits.try_set_permits(-1); }) == errc::bad_argument);
  CHECK(w.own.snapshot().scripts == before);
  CHECK(w.value() == "2");
  CHECK(error_of([&] { return w.own.get_semaphore(""); }) == errc::bad_argument);
  CHECK_FALSE(w.permits.try_acquire(std::numeric_limits<int>::max()));
}

TEST_CASE("semaphore: a key of another type and a value that is no number are errors that change nothing (case 26)",
          "[server][kind]") {
  semaphore_world w;
  w.admin.ok("HSET", w.name, "a", "1");
  CHECK(error_of([&] { w.permits.acquire(); }) == errc::wrong_type);
  CHECK(error_of([&] { w.permits.release(); }) == errc::wrong_type);
  CHECK(error_of([&] { w.permits.add_permits(1); }) == errc::wrong_type);
  CHECK(error_of([&] { return w.permits.drain_permits(); }) == errc::wrong_type);
  CHECK(error_of([&] { return w.permits.available_permits(); }) == errc::wrong_type);
  CHECK_FALSE(w.permits.try_set_permits(1));
  CHECK(w.admin.text("TYPE", w.name) == "hash");
  w.admin.ok("DEL", w.name);
  w.admin.ok("SET", w.name, "many");
  CHECK(error_of([&] { w.permits.acquire(); }) == errc::server_error);
  CHECK(error_of([&] { w.permits.release(); }) == errc::server_error);
  CHECK(error_of([&] { return w.permits.drain_permits(); }) == errc::server_error);
  CHECK(error_of([&] { return w.permits.available_permits(); }) == errc::server_error);
  CHECK(w.value() == "many");
  w.admin.ok("SET", w.name, "1.5");
  CHECK(error_of([&] { return w.permits.drain_permits(); }) == errc::server_error);
  CHECK(w.value() == "1.5");
}

TEST_CASE("semaphore: every key of ours has a time to live (case 35)", "[server][kind]") {
  semaphore_world w;
  w.permits.try_set_permits(2);
  w.permits.acquire();
  w.permits.release();
  w.permits.add_permits(1);
  w.permits.drain_permits();
  auto const keys = w.admin.ok("KEYS", "latchkey_*{" + w.name + "}*").elements;
  CHECK(keys.size() == 5);
  for (auto const& key : keys) {
    auto const left = w.admin.integer("PTTL", key.text);
    CHECK(left > 0);
    CHECK(left <= 20'000);
  }
}

TEST_CASE("semaphore: waiters of a client are served in their order, the big request too", "[server][kind]") {
  semaphore_world w;
  w.permits.try_set_permits(1);
  auto first = taking(w.permits, 3);
  REQUIRE(w.log.wait_for(event_type::waiting, w.name));
  auto second = taking(w.permits, 1);
  REQUIRE(wait_until([&] { return w.own.snapshot().waiting == 2; }));
  CHECK_FALSE(w.permits.try_acquire());  // one is free, but two have come before
  w.permits.release();
  w.permits.release();
  CHECK(first.get());
  CHECK_FALSE(done(second));
  w.permits.release();
  CHECK(second.get());
  CHECK(w.value() == "0");
}

TEST_CASE("semaphore: one release of many permits serves many waiters of two clients", "[server][kind]") {
  semaphore_world w;
  client other(common_server().uri(), steady_config());
  auto const theirs = other.get_semaphore(w.name);
  w.permits.try_set_permits(0);
  std::vector<std::future<bool>> all;
  for (int i = 0; i < 4; ++i) all.push_back(taking(i % 2 == 0 ? w.permits : theirs, 1));
  REQUIRE(wait_until([&] { return w.own.snapshot().waiting == 2 && other.snapshot().waiting == 2; }));
  REQUIRE(wait_until([&] { return w.admin.listeners_at(w.channel) == 2; }));
  w.permits.release(4);
  for (auto& one : all) CHECK(one.get());
  CHECK(w.value() == "0");
}

TEST_CASE("semaphore: what a waiting client claims is left alone by other clients, until it is served",
          "[server][kind]") {
  semaphore_world w;
  client other(common_server().uri(), steady_config());
  auto const theirs = other.get_semaphore(w.name);
  w.permits.try_set_permits(2);
  auto big = taking(w.permits, 4);
  REQUIRE(wait_until([&] { return w.admin.text("GET", w.claim) == "4 " + w.own.id(); }));
  auto const left = w.admin.integer("PTTL", w.claim);
  CHECK(left > 0);
  CHECK(left <= 2'000);
  CHECK_FALSE(theirs.try_acquire());  // two are free, and claimed
  theirs.release();
  CHECK_FALSE(theirs.try_acquire());
  theirs.add_permits(3);  // six: two more than are claimed, or what is left of them
  CHECK(big.get());
  CHECK(w.admin.integer("EXISTS", w.claim) == 0);
  CHECK(theirs.try_acquire(2));
  CHECK(w.value() == "0");
}

TEST_CASE("semaphore: a claim goes with the call that made it, and not by itself", "[server][kind]") {
  semaphore_world w;
  client other(common_server().uri(), steady_config());
  w.permits.try_set_permits(2);
  auto const unclaimed = [&] { return w.admin.integer("EXISTS", w.claim) == 0; };
  auto big = std::async(std::launch::async, [&] { return w.permits.try_acquire(4, 300ms); });
  REQUIRE(wait_until([&] { return !unclaimed(); }));
  w.admin.ok("PERSIST", w.claim);  // it does not end by itself
  CHECK_FALSE(big.get());
  CHECK(wait_until(unclaimed));
  CHECK(other.get_semaphore(w.name).try_acquire(2));
}

TEST_CASE("semaphore: whom a claim kept out is told when it is served", "[server][kind]") {
  semaphore_world w;
  client other(common_server().uri(), steady_config());
  auto const theirs = other.get_semaphore(w.name);
  w.permits.try_set_permits(2);
  auto big = taking(w.permits, 4);
  REQUIRE(wait_until([&] { return w.admin.integer("EXISTS", w.claim) == 1; }));
  auto small = taking(theirs, 2);
  REQUIRE(wait_until([&] { return other.snapshot().waiting == 1; }));
  theirs.add_permits(4);
  CHECK(big.get());
  CHECK(small.get());
  CHECK(w.value() == "0");
}

TEST_CASE("semaphore: a big request is not passed for ever by the small ones of other clients", "[server][kind]") {
  semaphore_world w;
  constexpr int all = 3;
  w.permits.try_set_permits(all);
  std::atomic<bool> ends = false;
  std::vector<std::jthread> small;
  std::vector<std::unique_ptr<client>> others;
  for (int i = 0; i < 4; ++i) {
    others.push_back(std::make_unique<client>(common_server().uri(), steady_config()));
    small.emplace_back([&ends, theirs = others.back()->get_semaphore(w.name)] {
      while (!ends) {
        theirs.acquire();
        std::this_thread::sleep_for(1ms);
        theirs.release();
      }
    });
  }
  REQUIRE(wait_until([&] { return others[3]->snapshot().acquired > 3; }));
  for (int i = 0; i < 5; ++i) {
    CHECK(w.permits.try_acquire(all, patience));
    w.permits.release(all);
  }
  ends = true;
  small.clear();
  CHECK(w.value() == "3");
}

TEST_CASE("semaphore: blocking, future and coroutine callers", "[server][kind]") {
  semaphore_world w;
  w.permits.try_set_permits(3);
  run_coro(take_and_give(w.permits));
  CHECK(value_of(w.permits.async_try_set_permits(1, asio::use_future)) == false);
  value_of(w.permits.async_release(asio::use_future));
  value_of(w.permits.async_acquire(asio::use_future));
  CHECK(value_of(w.permits.async_try_acquire(asio::use_future)) == false);
  std::promise<bool> called;
  w.permits.async_available_permits(
      [&called, only = std::make_unique<int>(0)](error_code error, int n) { called.set_value(!error && n == *only); });
  CHECK(value_of(called.get_future()));
}

TEST_CASE("semaphore: who is cancelled while he waits has taken nothing", "[server][kind]") {
  semaphore_world w;
  w.permits.try_set_permits(1);
  asio::cancellation_signal stop;
  auto waiter = w.permits.async_acquire(2, asio::bind_cancellation_slot(stop.slot(), asio::use_future));
  REQUIRE(w.log.wait_for(event_type::waiting, w.name));
  stop.emit(asio::cancellation_type::terminal);
  CHECK(error_in(std::move(waiter)) == asio::error::operation_aborted);
  CHECK(w.own.snapshot().waiting == 0);
  CHECK(w.value() == "1");
  CHECK(w.permits.try_acquire());  // its claim was this client's
}

TEST_CASE("semaphore: a wait ends in time with false, and closing ends it with an error", "[server][kind]") {
  semaphore_world w;
  w.permits.try_set_permits(0);
  stopwatch since;
  CHECK_FALSE(w.permits.try_acquire(1, brief_wait));
  CHECK(since.passed() >= brief_wait);
  auto waiter = w.permits.async_acquire(asio::use_future);
  REQUIRE(wait_until([&] { return w.own.snapshot().waiting == 1; }));
  w.own.close();
  CHECK(error_in(std::move(waiter)) == errc::closed);
  CHECK(error_of([&] { w.permits.release(); }) == errc::closed);
}

TEST_CASE("semaphore: counters show its calls, and no hold", "[server][kind]") {
  semaphore_world w;
  w.permits.try_set_permits(2);
  w.permits.acquire();
  w.permits.acquire();
  auto const now = w.own.snapshot();
  CHECK(now.acquired == 2);
  CHECK(now.held == 0);
  CHECK(w.log.count_after(w.own, event_type::granted, w.name) == 2);
  CHECK(w.log.count(event_type::no_time_to_live) == 0);
}

TEST_CASE("semaphore: permits come back where the server has no memory left or refuses PUBLISH", "[server][kind]") {
  private_world w;
  auto const permits = w.own.get_semaphore(w.name);
  permits.try_set_permits(2);
  permits.acquire();
  w.admin.ok("CONFIG", "SET", "maxmemory", "1");
  CHECK(error_of([&] { return permits.try_acquire(); }) == errc::server_error);
  CHECK(error_of([&] { permits.add_permits(1); }) == errc::server_error);
  permits.release();
  w.admin.ok("CONFIG", "SET", "maxmemory", "0");
  CHECK(w.admin.text("GET", w.name) == "2");
  w.admin.ok("ACL", "SETUSER", "default", "-publish");
  permits.acquire();
  permits.release();
  CHECK(w.admin.text("GET", w.name) == "2");
  CHECK(w.log.wait_for(event_type::publish_refused, w.name));
}

TEST_CASE("semaphore: handles of one name and client compare equal", "[server][kind]") {
  semaphore_world w;
  CHECK(w.permits == w.own.get_semaphore(w.name));
  CHECK_FALSE(w.permits == w.own.get_semaphore(new_name()));
  CHECK(w.permits.name() == w.name);
}
