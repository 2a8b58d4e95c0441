// The red lock: a majority of independent servers.
#include <latchkey/latchkey.hpp>
#include <support/catch.hpp>
#include <support/errors.hpp>
#include <support/redis_server.hpp>
#include <support/worlds.hpp>

#include <boost/asio/use_future.hpp>

#include <atomic>
#include <deque>
#include <future>
#include <map>
#include <numeric>
#include <thread>
#include <vector>

using namespace latchkey;
using namespace latchkey::test;

namespace {

using counts = std::map<std::string, int>;

config red_config() {
  return {.lock_watchdog_timeout = 1500ms * slowness,
          .connect_timeout = 1s * slowness,
          .timeout = 400ms * slowness,
          .retry_delay = 50ms,
          .close_timeout = 300ms};
}

// Five servers, each with a client of its own; another caller has clients of his own.
struct five_servers {
  explicit five_servers(config const& settings = red_config(), redis_options const& options = {}) {
    for (int i = 0; i < 5; ++i) servers.emplace_back(options);
    for (auto& one : servers) {
      mine.push_back(std::make_unique<client>(one.uri(), settings));
      theirs.push_back(std::make_unique<client>(one.uri(), settings));
    }
    red = std::make_unique<distributed_lock>(join(mine));
    other = std::make_unique<distributed_lock>(join(theirs));
  }

  distributed_lock join(std::vector<std::unique_ptr<client>> const& clients) const {
    std::vector<distributed_lock> members;
    for (auto const& one : clients) members.push_back(one->get_lock("lock"));
    return clients.front()->get_red_lock(members);
  }

  // How many of the servers that answer show the key.
  int keys(std::vector<int> const& of = {0, 1, 2, 3, 4}) const {
    return std::accumulate(of.begin(), of.end(), 0, [&](int sum, int i) {
      auto admin = servers[static_cast<std::size_t>(i)].admin();
      return sum + static_cast<int>(admin.integer("EXISTS", "lock"));
    });
  }
  void warm_up() const {
    red->lock();
    REQUIRE(wait_until([&] { return keys() == 5; }));
    red->unlock();
    REQUIRE(wait_until([&] { return keys() == 0; }));
  }

  std::deque<redis_server> servers;
  std::vector<std::unique_ptr<client>> mine, theirs;
  std::unique_ptr<distributed_lock> red, other;
};

}  // namespace

TEST_CASE("red lock: it holds all servers that answer and gives them all back", "[server][red]") {
  five_servers w;
  auto held = w.red->acquire({.lease = 10s});
  REQUIRE(held.held());
  CHECK(wait_until([&] { return w.keys() == 5; }));
  CHECK(held.remaining() <= 10s - 102ms);  // the drift of clocks
  CHECK(held.remaining() > 5s);
  CHECK(held.fencing_token() == std::nullopt);
  CHECK(w.red->is_held_by(held.owner()));
  CHECK(w.other->is_locked());
  CHECK_FALSE(w.other->try_lock());
  CHECK(held.extend(60s));
  CHECK(held.remaining() > 50s);
  CHECK(held.remaining() <= 60s - 602ms);
  CHECK(held.extend(2s));
  CHECK(held.remaining() <= 2s - 22ms);
  CHECK(held.release() == release_result::released);
  CHECK(wait_until([&] { return w.keys() == 0; }));
  CHECK(error_of([&] { w.red->force_unlock(); }) == errc::bad_argument);
  CHECK(error_of([&] { static_cast<void>(w.red->remaining_time_to_live()); }) == errc::bad_argument);
}

TEST_CASE("red lock: while it is made shorter it is not trusted for longer than before", "[server][red]") {
  five_servers w;
  auto held = w.red->acquire({.lease = 60s});
  for (auto& one : w.servers) one.stop();
  REQUIRE(wait_until([&] {
    return std::none_of(w.mine.begin(), w.mine.end(), [](auto const& one) { return one->snapshot().connected; });
  }));
  auto const before = held.remaining();
  auto answer = held.async_extend(2s, asio::use_future);  // nobody can be asked yet: what was promised stands
  CHECK(held.remaining() <= before);
  CHECK_THROWS_AS(answer.get(), boost::system::system_error);
  CHECK(held.remaining() <= before);
}

TEST_CASE("red lock: its cost in commands", "[server][red]") {
  five_servers w(red_config(), {.tcp = true});
  w.warm_up();
  std::deque<command_counter> counters;
  for (auto const& one : w.servers) counters.emplace_back(one);
  for (auto& one : counters) one.take();
  auto held = w.red->acquire({.lease = 10s});
  REQUIRE(wait_until([&] { return w.keys() == 5; }));
  auto const one_script_each = [&] {
    for (auto& one : counters) {
      auto const lines = one.take_lines();
      CAPTURE(lines);
      CHECK(lines.size() == 1);
      CHECK(lines.at(0).find("EVALSHA") != std::string::npos);
    }
  };
  one_script_each();
  CHECK(held.release() == release_result::released);
  REQUIRE(wait_until([&] { return w.keys() == 0; }));
  one_script_each();
}

TEST_CASE("red lock: two servers killed while it is held, and it goes on", "[server][red]") {
  auto settings = red_config();
  settings.lock_watchdog_timeout = 2s + 1s * slowness;
  five_servers w(settings);
  auto held = w.red->acquire();
  REQUIRE(held.held());
  REQUIRE(wait_until([&] { return w.keys() == 5; }));
  w.servers[1].kill();
  w.servers[3].kill();
  stopwatch since;
  REQUIRE(wait_until([&] {
    REQUIRE(held.held());  // at every moment
    return since.passed() > settings.lock_watchdog_timeout + 1s;
  }));
  CHECK_FALSE(held.lost().stop_requested());
  CHECK(w.red->is_held_by(held.owner()));
  CHECK(waits_in_vain([&] { return w.other->try_lock(1s * slowness); }));
  CHECK(held.release() == release_result::released);
  CHECK(wait_until([&] { return w.keys({0, 2, 4}) == 0; }));
  CHECK(w.other->try_lock(5s));  // with two dead
  w.other->unlock();
}

TEST_CASE("red lock: two servers killed while it is acquired, and it goes on", "[server][red]") {
  five_servers w;
  w.warm_up();
  auto theirs = w.other->acquire();
  REQUIRE(wait_until([&] { return w.keys() == 5; }));
  auto waiter = w.red->async_acquire(asio::use_future);
  w.servers[0].kill();
  w.servers[4].kill();
  CHECK(theirs.release() == release_result::released);
  auto held = value_of(std::move(waiter));
  CHECK(held.held());
  CHECK(w.keys({1, 2, 3}) == 3);
  CHECK(held.release() == release_result::released);
}

TEST_CASE("red lock: three servers killed, and it fails within its bound and leaves nothing", "[server][red]") {
  five_servers w;
  w.warm_up();
  for (int dead : {0, 2, 4}) w.servers[static_cast<std::size_t>(dead)].kill();
  stopwatch since;
  auto const once = error_of([&] { static_cast<void>(w.red->try_lock()); });
  CHECK((once == errc::timeout || once == errc::connect_failed || once == errc::connection_lost));
  CHECK(since.passed() < 2s * slowness);
  stopwatch again;
  CHECK(error_of([&] { static_cast<void>(w.red->try_lock(500ms)); }) == errc::timeout);
  CHECK(again.passed() >= 500ms);
  CHECK(again.passed() < 2s * slowness);
  CHECK(wait_until([&] { return w.keys({1, 3}) == 0; }, red_config().lock_watchdog_timeout));
}

TEST_CASE("red lock: nobody who waits gives up before his wait is over", "[server][red]") {
  constexpr int callers = 16, waits = 10;
  auto const wait = 60ms * slowness;
  five_servers w;
  w.warm_up();
  auto const theirs = w.other->acquire();
  std::atomic<int> early = 0, unsure = 0, wrong = 0;
  {
    std::vector<std::jthread> all;
    for (int i = 0; i < callers; ++i)
      all.emplace_back([&] {
        for (int k = 0; k < waits; ++k) {
          auto const end = test::clock::now() + wait;
          bool taken = false;
          auto const error = error_of([&] { taken = w.red->try_lock(wait); });
          early += test::clock::now() < end;
          unsure += error == errc::timeout;  // a server that was asked once more might still grant it
          wrong += taken || (error && error != errc::timeout);
        }
      });
  }
  CHECK(early == 0);
  CHECK(wrong == 0);
  CHECK(unsure <= callers * waits / 2);
}

TEST_CASE("red lock: three servers killed while it is held is a loss, within the lease", "[server][red]") {
  five_servers w;
  auto held = w.red->acquire();
  REQUIRE(wait_until([&] { return w.keys() == 5; }));
  for (int dead : {0, 2, 4}) w.servers[static_cast<std::size_t>(dead)].kill();
  stopwatch since;
  CHECK(wait_until([&] { return held.lost().stop_requested(); }));
  CHECK(since.passed() < red_config().lock_watchdog_timeout + 1s * slowness);
  CHECK_FALSE(held.held());
  CHECK(wait_until([&] { return w.keys({1, 3}) == 0; }));
  CHECK(held.release() == release_result::expired);
}

TEST_CASE("red lock: one server restarted empty, and the hold and the exclusion last", "[server][red]") {
  five_servers w;
  auto held = w.red->acquire();
  REQUIRE(wait_until([&] { return w.keys() == 5; }));
  w.servers[2].restart();
  REQUIRE(wait_until([&] { return w.mine[2]->snapshot().lost == 1; }));
  CHECK(held.held());
  CHECK(w.other->is_locked());
  CHECK(waits_in_vain([&] { return w.other->try_lock(200ms * slowness); }));
  CHECK(wait_until([&] { return w.keys({2}) == 0; }));  // what the other one got there went back
  CHECK(held.release() == release_result::released);
  CHECK(wait_until([&] { return w.keys() == 0; }));
}

TEST_CASE("red lock: one server paused for two seconds costs nobody two seconds", "[server][red]") {
  five_servers w;
  w.warm_up();
  w.servers[3].pause();
  auto resumed = std::async(std::launch::async, [&] {
    std::this_thread::sleep_for(2s);
    w.servers[3].resume();
  });
  stopwatch since;
  for (int i = 0; i < 20; ++i) {
    auto held = w.red->acquire({.lease = 10s});
    REQUIRE(held.held());
    CHECK(held.release() == release_result::released);
  }
  CHECK(since.passed() < 1s * slowness);
  resumed.get();
  CHECK(wait_until([&] { return w.keys() == 0; }));  // what came late was given back
}

TEST_CASE("red lock: a majority of paused servers fails in time, and what they grant late goes back", "[server][red]") {
  five_servers w;
  w.warm_up();
  for (std::size_t i : {0u, 1u, 2u}) w.servers[i].pause();
  stopwatch since;
  CHECK(error_of([&] { static_cast<void>(w.red->try_lock(0ms, 1s)); }) == errc::timeout);
  CHECK(since.passed() < 1s * slowness);
  for (std::size_t i : {0u, 1u, 2u}) w.servers[i].resume();
  CHECK(wait_until([&] { return w.keys() == 0; }));
  CHECK(w.red->try_lock(5s));
  w.red->unlock();
}

TEST_CASE("red lock: callers exclude each other and all have their turns", "[server][red]") {
  five_servers w;
  w.warm_up();
  constexpr int turns = 20;
  std::atomic<int> inside{0}, most{0}, total{0};
  auto const work = [&](distributed_lock const& lock) {
    for (int i = 0; i < turns; ++i) {
      lock.lock();
      most = std::max<int>(most, ++inside);
      ++total;
      --inside;
      lock.unlock();
    }
  };
  auto second = std::async(std::launch::async, [&] { work(*w.other); });
  auto third = std::async(std::launch::async, [&] { work(*w.red); });
  work(*w.red);
  second.get();
  third.get();
  CHECK(total == 3 * turns);
  CHECK(most == 1);
  CHECK(wait_until([&] { return w.keys() == 0; }));
}

TEST_CASE("A13: red lock: the same member twice, no members, leases shorter than the drift", "[server][red]") {
  common_world w;
  auto const b = w.own.get_lock(new_name());
  CHECK(error_of([&] { w.own.get_red_lock({}); }) == errc::bad_argument);
  CHECK(error_of([&] { w.own.get_red_lock({w.lock, b, w.lock}); }) == errc::bad_argument);
  CHECK(error_of([&] { w.own.get_red_lock({w.lock, w.own.get_multi_lock({b, w.lock})}); }) == errc::bad_argument);
  auto const red = w.own.get_red_lock({w.lock, b});
  CHECK(red == w.own.get_red_lock({w.lock, b}));
  for (auto const lease : {0ms, 1ms, 2ms}) CHECK(error_of([&] { red.lock(lease); }) == errc::bad_argument);
  auto held = red.acquire();
  CHECK(error_of([&] { static_cast<void>(held.extend(2ms)); }) == errc::bad_argument);
  CHECK(held.held());
}

TEST_CASE("E66: red lock: the loss is told when the validity ends, not when the leases do", "[server][red]") {
  five_servers w;
  auto held = w.red->acquire({.lease = brief_lease * 2});
  REQUIRE(held.held());
  auto const end = held.valid_until();
  REQUIRE(wait_until([&] { return held.lost().stop_requested(); }));
  CHECK(clock::now() >= end);
  CHECK_FALSE(held.held());
  CHECK(wait_until([&] { return w.keys() == 0; }));
}

TEST_CASE("red lock: a multi lock on each of three servers", "[server][red]") {
  five_servers w;
  std::vector<distributed_lock> pairs;
  for (std::size_t i = 0; i < 3; ++i)
    pairs.push_back(w.mine[i]->get_multi_lock({w.mine[i]->get_lock("a"), w.mine[i]->get_lock("b")}));
  auto const red = w.mine[0]->get_red_lock(pairs);
  w.theirs[1]->get_lock("b").lock();  // one of the three is busy
  auto held = red.acquire({.wait = 5s});
  REQUIRE(held.held());
  CHECK(w.servers[0].admin().integer("EXISTS", "a", "b") == 2);
  CHECK(w.servers[1].admin().integer("EXISTS", "a") == 0);
  CHECK(held.release() == release_result::released);
  CHECK(wait_until([&] { return w.servers[0].admin().integer("EXISTS", "a", "b") == 0; }));
  w.theirs[1]->get_lock("b").unlock();
}
