// A count that waiters see reach zero: what Redisson's RCountDownLatch does.
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
#include <vector>

using namespace latchkey;
using namespace latchkey::test;

namespace {

struct latch_world : common_world {
  count_down_latch latch = own.get_count_down_latch(name);
  std::string channel = "redisson_countdownlatch__channel__{" + name + "}";

  std::string value() { return admin.text("GET", name); }
  bool listened() { return admin.listeners_at(channel) > 0; }
};

asio::awaitable<void> count_to_zero(count_down_latch latch) {
  check_equal(co_await latch.async_try_set_count(2), true);
  check_equal(co_await latch.async_wait_for(brief_wait), false);
  co_await latch.async_count_down();
  check_equal(co_await latch.async_count(), 1);
  co_await latch.async_count_down();
  co_await latch.async_wait();
  check_equal(co_await latch.async_wait_for(0ms), true);
}

}  // namespace

TEST_CASE("latch: it shows as a string with the count, goes at zero, and says so", "[server][kind]") {
  latch_world w;
  channel_ear heard(common_server(), w.channel);
  CHECK(w.latch.count() == 0);
  CHECK(w.latch.try_set_count(2));
  CHECK(heard.next() == "1");
  CHECK(w.value() == "2");
  CHECK(w.admin.integer("PTTL", w.name) == -1);
  CHECK_FALSE(w.latch.try_set_count(7));
  w.latch.count_down();
  CHECK(w.latch.count() == 1);
  CHECK_FALSE(w.latch.wait_for(0ms));
  w.latch.count_down();
  CHECK(heard.next() == "0");
  CHECK(w.admin.integer("EXISTS", w.name) == 0);
  w.latch.count_down();  // without a count: nothing, and no message
  CHECK(w.admin.integer("EXISTS", w.name) == 0);
  CHECK(w.latch.try_set_count(std::numeric_limits<std::int64_t>::max()));
  CHECK(heard.next() == "1");
  CHECK(w.latch.count() == std::numeric_limits<std::int64_t>::max());
}

TEST_CASE("latch: its channel has braces even if the name has", "[server][kind]") {
  latch_world w;
  auto const latch = w.own.get_count_down_latch("{" + w.name + "}:a");
  channel_ear heard(common_server(), "redisson_countdownlatch__channel__{{" + w.name + "}:a}");
  latch.try_set_count(1);
  CHECK(heard.next() == "1");
  latch.count_down();
  CHECK(heard.next() == "0");
}

TEST_CASE("latch: waiting for zero ends at once, and a count below one is refused (case 14)", "[server][kind]") {
  latch_world w;
  w.latch.wait();
  CHECK(w.latch.wait_for(0ms));
  auto const before = w.own.snapshot().scripts;
  for (std::int64_t count : {std::int64_t{0}, std::int64_t{-1}, std::numeric_limits<std::int64_t>::min()}) {
    CHECK(error_of([&] { return w.latch.try_set_count(count); }) == errc::bad_argument);
    CHECK(error_in(w.latch.async_try_set_count(count, asio::use_future)) == errc::bad_argument);
  }
  CHECK(w.own.snapshot().scripts == before);
  CHECK(error_of([&] { return w.own.get_count_down_latch(""); }) == errc::bad_argument);
  w.admin.ok("SET", w.name, "0");  // Redisson can set this
  CHECK(w.latch.wait_for(1s));
}

TEST_CASE("latch: a key of another type and a value that is no number are errors that change nothing (case 26)",
          "[server][kind]") {
  latch_world w;
  w.admin.ok("HSET", w.name, "a", "1");
  CHECK(error_of([&] { w.latch.wait(); }) == errc::wrong_type);
  CHECK(error_of([&] { w.latch.count_down(); }) == errc::wrong_type);
  CHECK(error_of([&] { return w.latch.count(); }) == errc::wrong_type);
  CHECK_FALSE(w.latch.try_set_count(1));
  w.admin.ok("DEL", w.name);
  w.admin.ok("SET", w.name, "many");
  CHECK(error_of([&] { w.latch.wait(); }) == errc::server_error);
  CHECK(error_of([&] { w.latch.count_down(); }) == errc::server_error);
  CHECK(w.value() == "many");
}

TEST_CASE("latch: waiters of two clients go on when another one counts down to zero", "[server][kind]") {
  latch_world w;
  client second(common_server().uri(), steady_config()), third(common_server().uri(), steady_config());
  w.latch.try_set_count(2);
  std::vector<std::future<bool>> all;
  for (int i = 0; i < 6; ++i)
    all.push_back(std::async(std::launch::async, [latch = (i % 2 == 0 ? w.own : second).get_count_down_latch(w.name)] {
      return latch.wait_for(patience);
    }));
  REQUIRE(wait_until([&] { return w.own.snapshot().waiting == 3 && second.snapshot().waiting == 3; }));
  third.get_count_down_latch(w.name).count_down();
  for (auto& one : all) CHECK(one.wait_for(0ms) != std::future_status::ready);
  third.get_count_down_latch(w.name).count_down();
  for (auto& one : all) CHECK(one.get());
}

TEST_CASE("latch: one request answers all who wait", "[server][kind]") {
  private_world w(steady_config(), {.tcp = true});
  auto const latch = w.own.get_count_down_latch(w.name);
  latch.try_set_count(1);
  constexpr int waiters = 200;
  auto const before = w.own.snapshot().scripts;
  std::vector<std::future<void>> all;
  for (int i = 0; i < waiters; ++i) all.push_back(latch.async_wait(asio::use_future));
  REQUIRE(wait_until([&] { return w.admin.listeners_at("redisson_countdownlatch__channel__{" + w.name + "}") == 1; }));
  // The look after the confirmation is answered before what is asked behind it.
  REQUIRE(wait_until([&] { return w.own.snapshot().scripts >= before + 2; }));
  CHECK(value_of(latch.async_count(asio::use_future)) == 1);
  command_counter counter(w.server);
  w.admin.ok("EVAL", "redis.call('del', KEYS[1]) redis.call('publish', KEYS[2], '0')", "2", w.name,
             "redisson_countdownlatch__channel__{" + w.name + "}");
  for (auto& one : all) value_of(std::move(one));
  auto sent = counter.take();
  sent.erase("PING");
  CHECK(sent == std::map<std::string, int>{{"EVALSHA", 1}});
}

TEST_CASE("latch: its deletion is noticed, with Redisson's message at once and without one soon", "[server][kind]") {
  latch_world w;
  w.latch.try_set_count(5);
  auto waiter = w.latch.async_wait(asio::use_future);
  REQUIRE(wait_until([&] { return w.own.snapshot().waiting == 1 && w.listened(); }));
  w.admin.ok("DEL", w.name);
  w.admin.ok("PUBLISH", w.channel, "1");
  value_of(std::move(waiter), 4s);
  w.latch.try_set_count(5);
  waiter = w.latch.async_wait(asio::use_future);
  REQUIRE(wait_until([&] { return w.own.snapshot().waiting == 1 && w.listened(); }));
  w.admin.ok("DEL", w.name);
  value_of(std::move(waiter), 10s);
}

TEST_CASE("latch: every key of ours has a time to live (case 35)", "[server][kind]") {
  latch_world w;
  w.latch.try_set_count(2);
  w.latch.count_down();
  auto const keys = w.admin.ok("KEYS", "latchkey_*{" + w.name + "}*").elements;
  CHECK(keys.size() == 2);
  for (auto const& key : keys) CHECK(w.admin.integer("PTTL", key.text) > 0);
}

TEST_CASE("latch: blocking, future and coroutine callers", "[server][kind]") {
  latch_world w;
  run_coro(count_to_zero(w.latch));
  CHECK(value_of(w.latch.async_try_set_count(1, asio::use_future)));
  auto waiter = w.latch.async_wait(asio::use_future);
  value_of(w.latch.async_count_down(asio::use_future));
  value_of(std::move(waiter));
  std::promise<std::int64_t> called;
  w.latch.async_count([&called](error_code, std::int64_t n) { called.set_value(n); });
  CHECK(value_of(called.get_future()) == 0);
}

TEST_CASE("latch: a wait can be cancelled, ends in time and ends with the client", "[server][kind]") {
  latch_world w;
  w.latch.try_set_count(1);
  CHECK_FALSE(w.latch.wait_for(brief_wait));
  asio::cancellation_signal stop;
  auto waiter = w.latch.async_wait(asio::bind_cancellation_slot(stop.slot(), asio::use_future));
  REQUIRE(wait_until([&] { return w.own.snapshot().waiting == 1; }));
  stop.emit(asio::cancellation_type::partial);
  CHECK(error_in(std::move(waiter)) == asio::error::operation_aborted);
  auto other = w.latch.async_wait(asio::use_future);
  REQUIRE(wait_until([&] { return w.own.snapshot().waiting == 1; }));
  w.own.close();
  CHECK(error_in(std::move(other)) == errc::closed);
  CHECK(w.value() == "1");
}

TEST_CASE("latch: it opens where the server has no memory left", "[server][kind]") {
  private_world w;
  auto const latch = w.own.get_count_down_latch(w.name);
  latch.try_set_count(2);
  latch.count_down();
  w.admin.ok("CONFIG", "SET", "maxmemory", "1");
  CHECK(error_of([&] { return w.own.get_count_down_latch("other").try_set_count(1); }) == errc::server_error);
  latch.count_down();
  w.admin.ok("CONFIG", "SET", "maxmemory", "0");
  CHECK(w.admin.integer("EXISTS", w.name) == 0);
  latch.wait();
}

TEST_CASE("latch: handles of one name and client compare equal", "[server][kind]") {
  latch_world w;
  CHECK(w.latch == w.own.get_count_down_latch(w.name));
  CHECK_FALSE(w.latch == w.own.get_count_down_latch(new_name()));
  CHECK(w.latch.name() == w.name);
}
