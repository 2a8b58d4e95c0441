// Three permits and many takers in four processes: never more than three inside, and in the end all are there.
#include <latchkey/latchkey.hpp>
#include <support/catch.hpp>
#include <support/child_process.hpp>
#include <support/worlds.hpp>

#include <signal.h>

#include <atomic>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

using namespace latchkey;
using namespace latchkey::test;

namespace {

constexpr int permits = 3;
constexpr int processes = 4;
constexpr int threads = 2;
constexpr int turns = 1'000 / slowness;  // of a process
constexpr auto limit = 120s * slowness;
constexpr auto lease_time = 2s * slowness;
constexpr auto fellow = "permit-taker";

// Calls without a wait of their own are tried so often and no more; here the connection goes again and again, so that
// the number is out of the way.
config undaunted() {
  auto settings = steady_config();
  settings.client_name = fellow;
  settings.retry_delay = 20ms;
  settings.retry_attempts = 100'000;
  settings.timeout = 10s * slowness;
  return settings;
}

// One turn: takes, calls `inside`, gives back.
using turn = std::function<void(client const&, std::function<void()> const& inside)>;

void semaphore_turn(client const& own, std::function<void()> const& inside) {
  auto const pool = own.get_semaphore("pool");
  pool.acquire();
  inside();
  pool.release();
}

void id_turn(client const& own, std::function<void()> const& inside) {
  auto const pool = own.get_permit_semaphore("pool");
  auto const id = pool.acquire();
  inside();
  pool.release(id);
}

void leased_turn(client const& own, std::function<void()> const& inside) {
  auto const pool = own.get_permit_semaphore("pool");
  permit const one = pool.acquire_permit({.lease = lease_time});
  if (one.held()) inside();
}

// Who is inside stands in a set on the server; whoever enters looks how many those are.
int take_turns(redis_server const& server, turn const& what, int process, child_process::channel& up) {
  std::atomic<int> wrong = 0;
  {
    client const own(server.uri(), undaunted());
    std::vector<std::jthread> all;
    for (int t = 0; t < threads; ++t)
      all.emplace_back([&, t] {
        auto admin = server.admin();
        auto const me = std::to_string(process) + ":" + std::to_string(t);
        try {
          for (int i = 0; i < turns / threads; ++i) {
            what(own, [&] {
              admin.integer("SADD", "inside", me);
              wrong += admin.integer("SCARD", "inside") > permits;
              admin.integer("SREM", "inside", me);
              admin.integer("INCR", "turns");
            });
          }
        } catch (std::exception const& problem) {
          ++wrong;
          up.say(problem.what());
        }
      });
  }
  return wrong == 0 ? 0 : 1;
}

struct pool_world {
  redis_server server{redis_options{.tcp = true}};
  raw_redis admin = server.admin();
  std::vector<std::unique_ptr<child_process>> children;

  pool_world() { admin.ok("SET", "pool", std::to_string(permits)); }

  void start(turn const& what) {
    for (int i = 0; i < processes; ++i)
      children.push_back(std::make_unique<child_process>(
          [this, what, i](child_process::channel& up) { return take_turns(server, what, i, up); }));
  }
  std::int64_t done() {
    auto const text = admin.text("GET", "turns");
    return text.empty() ? 0 : std::stoll(text);
  }
  void join() {
    for (auto& child : children) CHECK(child->wait(limit) == 0);
  }
  // Looks as a client does, so that what has ended is taken back.
  int free() { return client(server.uri(), steady_config()).get_permit_semaphore("pool").available_permits(); }
};

void kill_connections_until(pool_world& w, std::int64_t done) {
  int killed = 0, kills = 0;
  for (auto const end = clock::now() + limit; w.done() < done && clock::now() < end; ++kills) {
    killed += w.admin.kill_clients(std::string("name=") + fellow);
    std::this_thread::sleep_for(20ms);
  }
  std::cout << w.done() << " turns, " << kills << " times killed " << killed << " connections\n";
  CHECK(killed > 20);
}

void expect_bound(turn const& what, bool with_kills = false) {
  pool_world w;
  w.start(what);
  if (with_kills) kill_connections_until(w, processes * turns / 2);
  w.join();
  CHECK(w.done() == processes * turns);
  CHECK(wait_until([&] { return w.free() == permits; }));
}

}  // namespace

TEST_CASE("semaphore: four processes are never more than three inside, and all permits come back", "[stress]") {
  expect_bound(semaphore_turn);
}

TEST_CASE("permit semaphore: four processes with ids are never more than three inside", "[stress]") {
  expect_bound(id_turn);
}

TEST_CASE("permit semaphore: four processes with leases are never more than three inside", "[stress]") {
  expect_bound(leased_turn);
}

TEST_CASE("semaphore: never more than three with the connections killed every 20 ms", "[stress]") {
  expect_bound(semaphore_turn, true);
}

TEST_CASE("permit semaphore: never more than three with ids and the connections killed every 20 ms", "[stress]") {
  expect_bound(id_turn, true);
}

TEST_CASE("permit semaphore: never more than three with leases and the connections killed every 20 ms", "[stress]") {
  expect_bound(leased_turn, true);
}

TEST_CASE("permit semaphore: leases of a process that was killed come back, and the others go on", "[stress]") {
  pool_world w;
  w.start(leased_turn);
  REQUIRE(wait_until([&] { return w.done() > turns; }));
  w.children[0]->send_signal(SIGKILL);
  CHECK(w.children[0]->wait() == 128 + SIGKILL);
  // Its permits stay taken for a lease; it itself is no longer inside.
  for (int t = 0; t < threads; ++t) w.admin.integer("SREM", "inside", "0:" + std::to_string(t));
  for (int i = 1; i < processes; ++i) CHECK(w.children[static_cast<std::size_t>(i)]->wait(limit) == 0);
  CHECK(w.done() >= (processes - 1) * turns);
  CHECK(wait_until([&] { return w.free() == permits; }));
}

TEST_CASE("semaphore: permits are gone with a process that was killed, as Redisson's, and no more", "[stress]") {
  pool_world w;
  child_process victim([&](child_process::channel& up) {
    client const own(w.server.uri(), steady_config());
    own.get_semaphore("pool").acquire();
    up.say("inside");
    up.hear(limit);
    return 0;
  });
  w.start(semaphore_turn);
  REQUIRE(victim.talk().hear() == "inside");
  victim.send_signal(SIGKILL);
  CHECK(victim.wait() == 128 + SIGKILL);
  w.join();
  CHECK(w.done() == processes * turns);
  CHECK(w.admin.text("GET", "pool") == std::to_string(permits - 1));
}
