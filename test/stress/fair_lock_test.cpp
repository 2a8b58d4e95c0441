// The fair lock's order of arrival over clients, again and again.
#include <latchkey/latchkey.hpp>
#include <support/catch.hpp>
#include <support/worlds.hpp>

#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

using namespace latchkey;
using namespace latchkey::test;

TEST_CASE("fair lock: 8 waiters of 3 clients are served in order, 100 times", "[stress][fair]") {
  constexpr int runs = 100;
  constexpr std::size_t waiters = 8;
  redis_server server;
  auto admin = server.admin();
  std::vector<std::unique_ptr<client>> clients;
  for (int i = 0; i < 3; ++i) clients.push_back(std::make_unique<client>(server.uri(), steady_config()));
  int in_order = 0;
  for (int run = 0; run < runs; ++run) {
    auto const name = "run-" + std::to_string(run);
    auto const queue = "redisson_lock_queue:{" + name + "}";
    lease held = clients[0]->get_fair_lock(name).acquire();
    std::mutex mutex;
    std::vector<std::size_t> served;
    std::vector<std::future<void>> over;
    std::vector<std::promise<void>> promises(waiters);
    for (std::size_t i = 0; i < waiters; ++i) {
      over.push_back(promises[i].get_future());
      clients[(i * 7 + static_cast<std::size_t>(run)) % 3]->get_fair_lock(name).async_acquire(
          [&, i](error_code error, lease one) {
            if (!error && one.held()) {
              std::scoped_lock const lock(mutex);
              served.push_back(i);
            }
            one = {};
            promises[i].set_value();
          });
      REQUIRE(wait_until([&] { return admin.integer("LLEN", queue) == static_cast<std::int64_t>(i) + 1; }));
    }
    held.release();
    for (auto& one : over) REQUIRE(one.wait_for(patience) == std::future_status::ready);
    std::vector<std::size_t> expected(waiters);
    for (std::size_t i = 0; i < waiters; ++i) expected[i] = i;
    in_order += served == expected;
  }
  CHECK(in_order == runs);
}
