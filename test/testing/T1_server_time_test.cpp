#include <testing/watched.hpp>

#include <stdexcept>

using namespace latchkey;
using namespace latchkey::test;

TEST_CASE("T1: the server's time passes only by advance") {
  testing::server redis;
  client const own(redis.uri());
  redis.take("job");
  auto const job = own.get_lock("job");
  CHECK(job.remaining_time_to_live() == std::chrono::milliseconds(30s));
  // Real time passes, and a lease ends by the client's own clock.
  auto brief = own.get_lock("brief").acquire({.lease = 150ms * slowness});
  watched_loss loss(brief);
  REQUIRE(loss.came());
  CHECK(job.remaining_time_to_live() == std::chrono::milliseconds(30s));
  redis.advance(10s);
  CHECK(job.remaining_time_to_live() == std::chrono::milliseconds(20s));
  CHECK(redis.holders("job").size() == 1);
}

TEST_CASE("T1: to the millisecond") {
  testing::server redis;
  redis.take("job");
  redis.advance(29'999ms);
  redis.advance(1ms);
  CHECK(redis.holders("job").size() == 1);  // a key is still there in its last millisecond
  redis.advance(200us);                     // rounded up
  CHECK(redis.holders("job").empty());
}

TEST_CASE("T1: real_time lets it go by itself, and advance still moves it") {
  testing::server redis;
  redis.real_time();
  redis.take("job");
  CHECK(redis.holders("job").size() == 1);
  redis.advance(30s);
  CHECK(wait_until([&] { return redis.holders("job").empty(); }));
}

TEST_CASE("T1: time does not go back, nor too far") {
  testing::server redis;
  redis.take("job");
  CHECK_THROWS_AS(redis.advance(-1ms), std::invalid_argument);
  CHECK_THROWS_AS(redis.advance(std::chrono::hours(24 * 365 * 101)), std::invalid_argument);
  CHECK_THROWS_AS(redis.advance(std::chrono::milliseconds::max()), std::invalid_argument);
  CHECK(redis.holders("job").size() == 1);
  redis.advance(0s);
  CHECK(redis.holders("job").size() == 1);
}
