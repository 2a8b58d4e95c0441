// Idle costs nothing: who waits for a lock that somebody else holds makes no system call.
#include <latchkey/latchkey.hpp>
#include <support/catch.hpp>
#include <support/foreign_holder.hpp>
#include <support/thread_cost.hpp>
#include <support/worlds.hpp>

#include <atomic>
#include <cstdint>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

using namespace latchkey;
using namespace latchkey::test;

namespace {

constexpr int together = 500;  // wait for one lock
constexpr int alone = 480;     // wait for a lock of their own
constexpr int blocked = 20;    // threads, for the first lock too
constexpr int waiters = together + alone + blocked;

constexpr auto window = 10s;

// ThreadSanitizer has a thread of its own, which wakes ten times a second.
#if defined(__SANITIZE_THREAD__)
constexpr long foreign_wakes_per_second = 11;
#else
constexpr long foreign_wakes_per_second = 0;
#endif

struct idle_world : private_world {
  explicit idle_world(config settings) : private_world(std::move(settings)) {
    foreign_holder(server, name);
    for (int i = 0; i < alone; ++i) foreign_holder(server, "lock-" + std::to_string(i));
    auto const ended = [this](error_code, lease) { ++completed; };
    for (int i = 0; i < together; ++i) lock.async_acquire(ended);
    for (int i = 0; i < alone; ++i) own.get_lock("lock-" + std::to_string(i)).async_acquire(ended);
    for (int i = 0; i < blocked; ++i)
      threads.emplace_back([this] {
        try {
          lock.lock();
        } catch (lock_error const&) {
          ++completed;
        }
      });
  }

  // Comes back when everybody waits, every channel is listened to, and the tries that this makes are answered.
  void resolve() {
    REQUIRE(wait_until([&] { return own.snapshot().waiting == waiters; }));
    REQUIRE(wait_until([&] { return admin.clients(" sub=" + std::to_string(alone + 1) + " ") == 1; }));
    REQUIRE(log.wait_for(event_type::waiting, alone + 1));
    REQUIRE(wait_until([&] { return quiet_looks() >= 100; }));
    REQUIRE(completed == 0);
  }

  ~idle_world() {
    own.close();
    threads.clear();
    CHECK(wait_until([&] { return completed == waiters; }));
  }

  // How often in a row nothing had been sent or received since the look before, and nothing was unanswered.
  int quiet_looks() {
    auto const now = own.snapshot();
    bool const same = now.commands == last.commands && now.bytes_received == last.bytes_received &&
                      admin.script_calls() == static_cast<std::int64_t>(now.scripts);
    last = now;
    return looks = same ? looks + 1 : 0;
  }

  std::atomic<int> completed = 0;
  std::vector<std::jthread> threads;
  stats last;
  int looks = 0;
};

// What all threads of the client and all blocked callers did meanwhile. The calling thread only sleeps: the time
// is what is measured.
thread_cost measure(std::string const& what, std::chrono::milliseconds span) {
  auto const before = cost_of_other_threads();
  std::this_thread::sleep_for(span);
  auto const after = cost_of_other_threads();
  thread_cost const cost{after.threads, after.voluntary - before.voluntary, after.involuntary - before.involuntary,
                         after.cpu - before.cpu};
  std::cout << what << ", " << waiters << " waiters, " << span.count() << " ms: " << cost.voluntary
            << " voluntary context switches, " << cost.cpu.count() << " us of CPU, " << cost.threads << " threads\n";
  CHECK(after.threads == before.threads);
  return cost;
}

}  // namespace

TEST_CASE("1,000 waiters of a client sleep without a system call for 10 s", "[server][show]") {
  idle_world w(steady_config());
  w.resolve();
  auto const commands = w.own.snapshot().commands;
  auto const cost = measure("idle", window);
  CHECK(w.own.snapshot().commands == commands);
  // Each of the three connections looks once more whether its last answer came in time, at the end of
  // config::timeout; a tick of the watchdog may fall into it, too.
  CHECK(cost.voluntary <= 4 + 10 * foreign_wakes_per_second);
  CHECK(cost.cpu <= 2ms * slowness);
}

TEST_CASE("1,000 waiters of a client cost the health ping and nothing else", "[server][show]") {
  auto settings = steady_config();
  settings.ping_interval = 500ms;
  idle_world w(settings);
  w.resolve();
  auto const commands = w.own.snapshot().commands;
  auto const cost = measure("pinging", 2s);
  auto const pings = static_cast<long>(w.own.snapshot().commands - commands);
  CHECK(pings >= 4);
  CHECK(pings <= 15);  // three connections, each at most every 500 ms
  // For each ping the thread wakes for the time and for the answer; what it posts to itself may be a sleep more.
  CHECK(cost.voluntary <= 4 * pings + 4 + 2 * foreign_wakes_per_second);
}
