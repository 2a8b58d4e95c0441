#include <testing/watched.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>

#include <thread>

using namespace latchkey;
using namespace latchkey::test;

namespace asio = boost::asio;

namespace {

// What nothing that sleeps for the time that is asked for could keep.
constexpr auto at_once = 5s * slowness;

}  // namespace

TEST_CASE("T2: a lease of 30 s is lost without waiting for it") {
  testing::server redis;
  client const own(redis.uri());
  auto fixed = own.get_lock("fixed").acquire({.lease = 30s});
  auto renewed = own.get_lock("renewed").acquire();
  watched_loss first(fixed), second(renewed);
  stopwatch const watch;
  redis.advance(31s);
  CHECK_FALSE(fixed.held());
  CHECK_FALSE(renewed.held());
  CHECK(first.came());
  CHECK(second.came());
  CHECK(watch.passed() < at_once);
  CHECK(redis.holders("fixed").empty());
  CHECK(redis.holders("renewed").empty());
}

TEST_CASE("T2: a smaller step takes away as much as it says") {
  testing::server redis;
  client const own(redis.uri());
  auto hold = own.get_lock("job").acquire({.lease = 60s});
  redis.advance(20s);
  CHECK(hold.remaining() <= 40s);
  CHECK(hold.remaining() > 40s - at_once);
  CHECK(hold.valid_until() <= std::chrono::steady_clock::now() + 40s);
  CHECK(own.get_lock("job").remaining_time_to_live() == std::chrono::milliseconds(40s));
}

TEST_CASE("T2: the watchdog renews in the time that is given") {
  testing::server redis;
  client const own(redis.uri());
  auto hold = own.get_lock("job").acquire();
  watched_loss loss(hold);
  stopwatch const watch;
  for (int i = 0; i < 12; ++i) redis.advance(10s);
  CHECK(own.snapshot().renewals >= 12);
  CHECK(hold.held());
  CHECK(loss.is_out());
  CHECK(redis.holders("job").size() == 1);
  CHECK(watch.passed() < 2 * at_once);
}

TEST_CASE("T2: who waits with a limit is told that it is over") {
  testing::server redis;
  client const own(redis.uri());
  redis.take("job");
  redis.take("other");
  stopwatch const watch;
  auto blocked = std::async(std::launch::async, [&] { return own.get_lock("job").try_lock(10s); });
  auto coroutine = own.get_lock("other").async_try_lock(owner::make(), 10s, asio::use_future);
  REQUIRE(waits(own, 2));
  redis.advance(10s);
  CHECK_FALSE(got(std::move(blocked)));
  CHECK_FALSE(got(std::move(coroutine)));
  CHECK(watch.passed() < at_once);
}

TEST_CASE("T2: who waits is granted when the lease of another has ended") {
  testing::server redis;
  client const own(redis.uri());
  redis.take("job");
  stopwatch const watch;
  auto granted = own.get_lock("job").async_acquire(asio::use_future);
  REQUIRE(waits(own));
  redis.advance(31s);
  auto const hold = got(std::move(granted));
  CHECK(hold.held());
  CHECK(redis.holders("job").at(0).client_id == own.id());
  CHECK(watch.passed() < at_once);
}

TEST_CASE("T2: a call to a server that does not answer ends in the time that is given") {
  testing::server redis;
  client const own(redis.uri());
  own.connect();
  auto const lock = own.get_lock("job");
  REQUIRE(lock.try_lock());  // by the direct lane, if there is one yet
  lock.unlock();
  redis.freeze();
  stopwatch const watch;
  auto blocked = std::async(std::launch::async, [&] {
    try {
      return lock.try_lock(3s) ? errc{} : errc::busy;
    } catch (lock_error const& problem) {
      return static_cast<errc>(problem.code().value());
    }
  });
  // Nobody tells when it has begun: time goes on until it is over.
  REQUIRE(wait_until([&] {
    redis.advance(1s);
    return blocked.wait_for(1ms) == std::future_status::ready;
  }));
  CHECK(blocked.get() == errc::timeout);
  CHECK(watch.passed() < at_once);
  redis.thaw();
}

TEST_CASE("T2: locks of several members, and their waits") {
  testing::server redis;
  client const own(redis.uri()), other(redis.uri());
  auto const pair = own.get_multi_lock({own.get_lock("a"), other.get_lock("b")});
  auto hold = pair.acquire({.lease = 30s});
  REQUIRE(hold.held());
  watched_loss loss(hold);
  redis.advance(31s);
  CHECK_FALSE(hold.held());
  CHECK(loss.came());
  redis.take("b");
  stopwatch const watch;
  auto blocked = std::async(std::launch::async, [&] { return pair.try_lock(10s); });
  auto coroutine = pair.async_try_lock(owner::make(), 10s, asio::use_future);
  REQUIRE(wait_until([&] {
    redis.advance(500ms);
    return blocked.wait_for(1ms) == std::future_status::ready && coroutine.wait_for(1ms) == std::future_status::ready;
  }));
  CHECK(watch.passed() < at_once);
}

TEST_CASE("T2: a red lock ends before its members, by the drift of their clocks") {
  testing::server redis;
  client const own(redis.uri());
  auto hold = own.get_red_lock({own.get_lock("a"), own.get_lock("b"), own.get_lock("c")}).acquire({.lease = 1h});
  REQUIRE(hold.held());
  watched_loss loss(hold);
  auto const trusted = hold.remaining();
  REQUIRE(trusted < 1h);
  redis.advance(trusted + 1ms);
  CHECK_FALSE(hold.held());
  CHECK(loss.came());
}

TEST_CASE("T2: a client on the caller's own loop") {
  testing::server redis;
  asio::io_context loop;
  client own(loop, redis.uri());
  auto soon = own.get_lock("job").async_acquire(asio::use_future);
  std::thread runs([&] { loop.run(); });
  {
    auto hold = got(std::move(soon));
    watched_loss loss(hold);
    redis.advance(31s);
    CHECK(loss.came());
  }
  own.close();
  runs.join();
}
