// config::local_turns against a real server: docs/kinds.md, "Local turns".
#include <latchkey/latchkey.hpp>
#include <support/catch.hpp>
#include <support/configs.hpp>
#include <support/patience.hpp>
#include <support/raw_redis.hpp>
#include <support/redis_server.hpp>

#include <array>
#include <atomic>
#include <set>
#include <string>
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
          of.get_plain_lock(name + ":plain"), of.get_read_write_lock(name + ":rw").write_lock()};
}

// Who holds it takes it again without a command. On a busy machine a turn may be over in the middle of a pair, and ends
// on the server.
bool costs_nothing_again(client const& own, distributed_lock const& lock) {
  for (int i = 0; i < 50; ++i) {
    auto const before = own.snapshot().scripts;
    lock.lock();
    lock.unlock();
    if (own.snapshot().scripts == before) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("local turns: who holds it takes it again without a command, and the server's count follows") {
  redis_server server;
  client own(server.uri(), with_turns());
  raw_redis admin = server.admin();
  auto const lock = own.get_lock("k");
  lock.lock();
  CHECK(costs_nothing_again(own, lock));
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
  for (std::size_t kind = 0; kind < locks_of(both[0], "shared").size(); ++kind) {
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

TEST_CASE("local turns: a writer takes it again without a command, and what is read meanwhile goes by the server") {
  redis_server server;
  client own(server.uri(), with_turns());
  raw_redis admin = server.admin();
  auto const pair = own.get_read_write_lock("k");
  auto const writes = pair.write_lock(), reads = pair.read_lock();
  writes.lock();
  CHECK(costs_nothing_again(own, writes));
  writes.lock();
  auto const shown = [&] {
    std::multiset<std::string> values;
    for (auto const& [field, value] : admin.hash("k")) values.insert(value);
    return values;
  };
  CHECK(wait_until([&] { return shown() == std::multiset<std::string>{"2", "write"}; }));
  reads.lock();
  writes.unlock();
  writes.unlock();
  CHECK(shown() == std::multiset<std::string>{"1", "read"});
  reads.unlock();
  CHECK(shown().empty());
}

TEST_CASE("local turns: writers and readers of two clients exclude each other") {
  redis_server server;
  std::array<client, 2> both{client(server.uri(), with_turns()), client(server.uri(), with_turns())};
  constexpr int turns = 150;
  std::atomic<int> readers{0}, writers{0};
  std::atomic<bool> broken{false};
  std::vector<std::thread> threads;
  for (auto& one : both)
    for (int i = 0; i < 4; ++i)
      threads.emplace_back([&, i, pair = one.get_read_write_lock("shared")] {
        auto const writes = pair.write_lock(), reads = pair.read_lock();
        for (int turn = 0; turn < turns; ++turn) {
          if (i == 3) {
            reads.lock();
            ++readers;
            if (writers != 0) broken = true;
            --readers;
            reads.unlock();
            continue;
          }
          writes.lock();
          if (++writers != 1 || readers != 0) broken = true;
          bool const downgrades = turn % 10 == i;
          if (downgrades) reads.lock();
          --writers;
          writes.unlock();
          if (!downgrades) continue;
          if (writers != 0) broken = true;
          reads.unlock();
        }
      });
  for (auto& one : threads) one.join();
  CHECK_FALSE(broken);
  for (auto& one : both) {
    auto const all = one.snapshot();
    CHECK(all.handed_off > 0);
    CHECK(all.lost == 0);
    CHECK(all.held == 0);
  }
  CHECK(server.admin().hash("shared").empty());
}
