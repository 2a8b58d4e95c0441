// config::local_turns against a real server: docs/kinds.md, "Local turns".
#include <latchkey/latchkey.hpp>
#include <support/catch.hpp>
#include <support/configs.hpp>
#include <support/patience.hpp>
#include <support/raw_redis.hpp>
#include <support/redis_server.hpp>

#include <array>
#include <atomic>
#include <thread>
#include <vector>

using namespace latchkey;
using namespace latchkey::test;

namespace {

config with_turns() {
  config made;
  made.local_turns = true;
  made.local_handoff = {.max_streak = 10'000, .max_time = milliseconds(3), .warm_up = 0};
  return made;
}

std::vector<distributed_lock> locks_of(client& of, std::string const& name) {
  return {of.get_lock(name), of.get_non_reentrant_lock(name + ":once"), of.get_spin_lock(name + ":spin"),
          of.get_plain_lock(name + ":plain")};
}

}  // namespace

TEST_CASE("local turns: who holds it takes it again without a command, and the server's count follows") {
  redis_server server;
  client own(server.uri(), with_turns());
  raw_redis admin = server.admin();
  auto const lock = own.get_lock("k");
  lock.lock();
  auto const before = own.snapshot().scripts;
  lock.lock();
  lock.unlock();
  CHECK(own.snapshot().scripts == before);
  lock.lock();
  CHECK(lock.hold_count() == 2);
  auto const shown = [&] { return admin.hash("k"); };
  CHECK(wait_until([&] { return shown().size() == 1 && shown().begin()->second == "2"; }));
  lock.unlock();
  CHECK(wait_until([&] { return shown().size() == 1 && shown().begin()->second == "1"; }));
  lock.unlock();
  CHECK(shown().empty());
}

TEST_CASE("local turns: threads of two clients exclude each other, and each client has its share") {
  redis_server server;
  std::array<client, 2> both{client(server.uri(), with_turns()), client(server.uri(), with_turns())};
  for (std::size_t kind = 0; kind < 4; ++kind) {
    constexpr int turns = 300;
    int inside = 0;  // guarded by the lock alone
    int sum = 0;
    std::atomic<int> worst{0};
    std::vector<std::thread> threads;
    for (auto& one : both)
      for (int i = 0; i < 3; ++i)
        threads.emplace_back([&, lock = locks_of(one, "shared")[kind]] {
          for (int turn = 0; turn < turns; ++turn) {
            lock.lock();
            if (++inside != 1) worst = inside;
            ++sum;
            --inside;
            lock.unlock();
          }
        });
    for (auto& one : threads) one.join();
    CHECK(worst == 0);
    CHECK(sum == 6 * turns);
  }
  for (auto& one : both) {
    auto const all = one.snapshot();
    CHECK(all.handed_off > 0);
    CHECK(all.lost == 0);
    CHECK(all.held == 0);
  }
}
