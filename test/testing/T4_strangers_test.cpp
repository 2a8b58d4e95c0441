#include <testing/watched.hpp>

#include <atomic>
#include <thread>
#include <vector>

using namespace latchkey;
using namespace latchkey::test;

TEST_CASE("T4: two servers are strangers") {
  testing::server one, other;
  CHECK(one.uri() != other.uri());
  client const here(one.uri()), there(other.uri());
  auto mine = here.get_lock("job").acquire();
  auto theirs = there.get_lock("job").acquire();
  REQUIRE(mine.held());
  REQUIRE(theirs.held());
  watched_loss loss(mine), no_loss(theirs);
  auto const asked = sent(other, "EVAL");

  CHECK(one.lose("job"));
  CHECK(loss.came());
  one.deny("evalsha");
  one.deny("eval");
  one.fail_next("ping", "ERR no");
  one.freeze();
  one.cut();
  CHECK(theirs.held());
  CHECK(no_loss.is_out());
  CHECK(other.holders("job").size() == 1);
  CHECK(sent(other, "EVAL") == asked);  // nobody was even asked
  CHECK(theirs.release() == release_result::released);

  // Time of the server alone: the clock of clients is one for the process.
  other.take("night");
  one.advance(1h);
  CHECK(other.holders("night").size() == 1);
  one.thaw();
}

TEST_CASE("T4: one after the other, and a client that is left over") {
  std::string uri;
  auto left_over = [&] {
    testing::server redis;
    uri = redis.uri();
    client made(uri);
    made.connect();
    return made;
  }();
  testing::server next;
  CHECK(next.uri() != uri);
  client const own(next.uri());
  CHECK(own.get_lock("job").try_lock());
  CHECK_THROWS_AS(left_over.get_lock("job").try_lock(1ms), lock_error);
}

TEST_CASE("T4: callers, clocks and faults at once") {
  constexpr int rounds = 60;
  testing::server one, other;
  std::atomic<bool> over{false};
  std::atomic<int> granted{0};
  auto const work = [&](std::string const& uri) {
    config settings;
    settings.retry_delay = 1ms;
    client const own(uri, settings);
    auto const lock = own.get_lock("job");
    while (!over) try {
        auto hold = lock.acquire({.wait = 1s});
        granted += hold.held();
      } catch (lock_error const&) {
      }
  };
  std::vector<std::thread> all;
  for (auto const* redis : {&one, &other, &one, &other}) all.emplace_back([&, redis] { work(redis->uri()); });
  for (int i = 0; i < rounds; ++i) {
    testing::server& redis = i % 2 == 0 ? one : other;
    REQUIRE(wait_until([&, before = granted.load()] { return granted > before; }));
    switch (i % 7) {
      case 0: redis.lose("job"); break;
      case 1: redis.take("job"); break;
      case 2: redis.cut(); break;
      case 3: redis.restart(i % 3 == 0); break;
      case 4: redis.fail_next("evalsha", "OOM no", 2); break;
      case 5:
        redis.freeze();
        redis.advance(4s);
        redis.thaw();
        break;
      default: redis.holders("job"); redis.commands();
    }
    redis.advance(31s);  // whoever was put there goes
  }
  over = true;
  for (auto& one_thread : all) one_thread.join();
  CHECK(granted >= rounds);
}
