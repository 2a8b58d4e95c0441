// All connections are killed every few milliseconds while threads and coroutines lock, re-enter and unlock.
#include <latchkey/latchkey.hpp>
#include <support/catch.hpp>
#include <support/run_coro.hpp>
#include <support/worlds.hpp>

#include <atomic>
#include <iostream>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace stress_killed_connections {

using namespace latchkey;
using namespace latchkey::test;

namespace {

constexpr auto period = 7ms * slowness;
constexpr auto duration = 3'000ms;
constexpr long fewest_turns = 10;

// The one connection that is not killed: it kills the others and looks at the counts.
class killer {
 public:
  explicit killer(redis_server const& server) : admin_(server.admin()) {}

  void kill() {
    std::scoped_lock const one_at_a_time(mutex_);
    killed_ += admin_.integer("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
    killed_ += admin_.integer("CLIENT", "KILL", "TYPE", "pubsub");
    ++kills_;
  }
  // How often the owner holds the lock, as the server sees it; empty if not at all.
  std::string count(std::string const& lock, std::string const& field) {
    std::scoped_lock const one_at_a_time(mutex_);
    return admin_.text("HGET", lock, field);
  }
  std::int64_t killed() const { return killed_; }
  int kills() const { return kills_; }

 private:
  std::mutex mutex_;
  raw_redis admin_;
  std::int64_t killed_ = 0;
  int kills_ = 0;
};

config patient() {
  auto settings = steady_config();
  settings.local_turns = false;  // the server shows every count at once
  settings.retry_delay = 20ms;
  // Calls without a wait of their own, unlock for one, are tried so often and no more. Here the connection goes
  // whenever there is one, so the number is out of the way; their time still ends.
  settings.retry_attempts = 100'000;
  settings.timeout = 10s * slowness;
  return settings;
}

struct stage : private_world {
  stage() : private_world(patient()) {}

  // What every turn does. `sum` is no atomic: the lock is all that protects it.
  struct tally {
    int inside = 0;
    long sum = 0;
  };
  void enter(tally& all) {
    if (++all.inside != 1) ++wrong;
  }
  void leave(tally& all) {
    ++all.sum;
    if (--all.inside != 0) ++wrong;
  }
  void expect(owner who, std::string const& count) {
    auto const found = killing.count(name, field(who));
    if (found == count) return;
    ++wrong;
    std::scoped_lock const one_at_a_time(words);
    std::cout << "owner " << to_string(who) << ": " << found << " instead of " << count << "\n";
  }
  void failed(std::string const& why) {
    ++errors;
    std::scoped_lock const one_at_a_time(words);
    std::cout << "shown to the caller: " << why << "\n";
  }

  killer killing{server};
  std::atomic<bool> ends = false;
  std::atomic<int> wrong = 0;
  std::atomic<int> errors = 0;
  std::mutex words;
};

void blocking_turns(stage& s, stage::tally& all, std::atomic<long>& turns) {
  auto const me = owner::this_thread();
  try {
    while (!s.ends) {
      s.lock.lock();
      s.enter(all);
      s.expect(me, "1");
      s.lock.lock();
      s.expect(me, "2");
      s.lock.unlock();
      s.expect(me, "1");
      s.leave(all);
      s.lock.unlock();
      s.expect(me, "");
      ++turns;
    }
  } catch (std::exception const& problem) {
    s.failed(problem.what());
  }
}

asio::awaitable<void> asynchronous_turns(stage& s, stage::tally& all, std::atomic<long>& turns) {
  auto const me = owner::make();
  try {
    while (!s.ends) {
      co_await s.lock.async_lock(me);
      s.enter(all);
      s.expect(me, "1");
      co_await s.lock.async_lock(me);
      s.expect(me, "2");
      co_await s.lock.async_unlock(me);
      s.expect(me, "1");
      s.leave(all);
      co_await s.lock.async_unlock(me);
      s.expect(me, "");
      ++turns;
    }
  } catch (std::exception const& problem) {
    s.failed(problem.what());
  }
}

// On a machine that is very busy it goes on until enough has been done in between.
void kill_for_a_while(stage& s, std::atomic<long> const& turns) {
  auto const begin = clock::now();
  for (auto next = begin; next < begin + duration || (turns < fewest_turns && next < begin + patience);
       next += period) {
    std::this_thread::sleep_until(next);
    s.killing.kill();
  }
  s.ends = true;
}

void check_the_end(stage& s, long turns, long sum) {
  auto const now = s.own.snapshot();
  std::cout << turns << " turns, " << s.killing.kills() << " times killed " << s.killing.killed() << " connections, "
            << now.reconnects << " reconnections, " << now.kills << " fenced\n";
  CHECK(s.errors == 0);
  CHECK(s.wrong == 0);
  CHECK(sum == turns);
  CHECK(s.killing.kills() >= 100);
  CHECK(now.reconnects >= 20);
  CHECK(turns >= fewest_turns);
  CHECK(now.held == 0);
  CHECK(now.waiting == 0);
  CHECK(now.lost == 0);
  CHECK(wait_until([&] { return s.own.snapshot().in_doubt == 0; }));
  CHECK(wait_until([&] { return s.admin.integer("EXISTS", s.name) == 0; }));
}

}  // namespace

TEST_CASE("connections killed every 7 ms: one thread ends with every count exact and sees no error", "[stress]") {
  stage s;
  stage::tally all;
  std::atomic<long> turns = 0;
  std::jthread worker([&] { blocking_turns(s, all, turns); });
  kill_for_a_while(s, turns);
  worker.join();
  s.admin = s.server.admin();
  check_the_end(s, turns, all.sum);
}

TEST_CASE("connections killed every 7 ms: threads and coroutines end with every count exact and see no error",
          "[stress]") {
  stage s;
  stage::tally all;
  std::atomic<long> turns = 0;
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back([&] { blocking_turns(s, all, turns); });
  asio::io_context io;
  for (int i = 0; i < 4; ++i) asio::co_spawn(io, asynchronous_turns(s, all, turns), [](std::exception_ptr) {});
  std::jthread runner([&] { io.run(); });
  kill_for_a_while(s, turns);
  threads.clear();
  runner.join();
  s.admin = s.server.admin();
  check_the_end(s, turns, all.sum);
}

}  // namespace stress_killed_connections
