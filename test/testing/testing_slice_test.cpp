#include <latchkey/latchkey.hpp>
#include <latchkey/testing/server.hpp>
#include <support/catch.hpp>

#include <chrono>
#include <cstdio>
#include <future>

using namespace std::chrono_literals;

TEST_CASE("a client locks through a socket to the modelled server, and learns of a loss") {
  latchkey::testing::server redis;
  latchkey::client const client(redis.uri());
  auto hold = client.get_lock("job").acquire();
  REQUIRE(hold.held());
  REQUIRE(redis.holders("job").size() == 1);
  CHECK(redis.holders("job")[0].client_id == client.id());
  std::promise<void> lost;
  hold.on_lost([&] { lost.set_value(); });
  CHECK(redis.lose("job"));
  auto const start = std::chrono::steady_clock::now();
  REQUIRE(lost.get_future().wait_for(15s) == std::future_status::ready);
  std::printf("%ld us\n", (long)std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - start).count());
  CHECK_FALSE(hold.held());
}

TEST_CASE("time") {
  latchkey::testing::server redis;
  latchkey::client const client(redis.uri());
  auto hold = client.get_lock("job").acquire();
  std::promise<void> lost;
  hold.on_lost([&] { lost.set_value(); });
  auto const start = std::chrono::steady_clock::now();
  redis.advance(31s);
  CHECK_FALSE(hold.held());
  REQUIRE(lost.get_future().wait_for(15s) == std::future_status::ready);
  std::printf("%ld us\n", (long)std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - start).count());
  CHECK(redis.holders("job").empty());
  for (auto const& one : redis.commands()) std::printf("%s\n", one.substr(0, 120).c_str());
}
