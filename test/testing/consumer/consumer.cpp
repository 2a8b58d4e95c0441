// A user's test: the work stops when the lock is lost.

#include <latchkey/latchkey.hpp>
#include <latchkey/testing/server.hpp>

#include <chrono>
#include <cstdlib>
#include <future>
#include <iostream>

using namespace std::chrono_literals;

int main() {
  latchkey::testing::server redis;
  latchkey::client const client(redis.uri());
  auto hold = client.get_lock("job").acquire();
  std::promise<void> told;
  hold.on_lost([&] { told.set_value(); });
  redis.lose("job");
  bool const came = told.get_future().wait_for(10s) == std::future_status::ready;
  auto const fixed = client.get_lock("other").acquire({.lease = 30s});
  redis.advance(31s);
  bool const good = came && !hold.held() && !fixed.held() && redis.holders("other").empty();
  std::cout << (good ? "lost, as ordered\n" : "something is wrong\n");
  return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
