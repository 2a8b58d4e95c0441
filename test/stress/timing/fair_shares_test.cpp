// The fair lock's promises, measured: how long it stands free while somebody waits, and equal shares.
#include <latchkey/latchkey.hpp>
#include <support/catch.hpp>
#include <support/child_process.hpp>
#include <support/errors.hpp>
#include <support/redis_server.hpp>
#include <support/redisson_fair.hpp>
#include <support/run_coro.hpp>
#include <support/worlds.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_future.hpp>

#include <signal.h>

#include <atomic>
#include <cstdlib>
#include <future>
#include <iostream>
#include <latch>
#include <memory>
#include <mutex>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace stress_fair_shares {

using namespace latchkey;
using namespace latchkey::test;

namespace {

// How long the long parts take: a few seconds, or what the environment says.
std::chrono::seconds length(std::chrono::seconds usual) {
  char const* const given = std::getenv("LATCHKEY_FAIRNESS_SECONDS");
  return given ? std::chrono::seconds(std::atoi(given)) : usual;
}

// One turn: what every caller does with the lock once it has it.
void hold_for_a_moment() { std::this_thread::sleep_for(2ms); }

class dice {
 public:
  explicit dice(unsigned seed) : random_(seed) {}
  milliseconds between(int low, int high) { return milliseconds(std::uniform_int_distribution<>(low, high)(random_)); }

 private:
  std::mt19937 random_;
};

struct arena {
  redis_server server;
  std::string const name = "shared";
  std::atomic<bool> ends = false;
  std::atomic<long> turns = 0;

  void turn() {
    hold_for_a_moment();
    ++turns;
  }
};

// Waits as long as it takes.
void takes_its_time(arena& s) {
  client own(s.server.uri(), steady_config());
  auto const lock = own.get_fair_lock(s.name);
  while (!s.ends) {
    lock.lock();
    s.turn();
    lock.unlock();
  }
}

// Gives up soon.
void impatient(arena& s) {
  client own(s.server.uri(), steady_config());
  auto const lock = own.get_fair_lock(s.name);
  static_cast<void>(lock.is_locked());  // no wait of so few milliseconds is enough to connect
  for (dice d(1); !s.ends;) {
    if (waits_in_vain([&] { return lock.try_lock(d.between(1, 40)); })) continue;
    s.turn();
    lock.unlock();
  }
}

// Changes its mind, in every state of a call.
void cancelling(arena& s) {
  client own(s.server.uri(), steady_config());
  auto const lock = own.get_fair_lock(s.name);
  for (dice d(2); !s.ends;) {
    asio::cancellation_signal signal;
    std::promise<bool> over;
    lock.async_acquire(asio::bind_cancellation_slot(signal.slot(), [&](error_code, lease held) {
      if (held) hold_for_a_moment();
      over.set_value(static_cast<bool>(held));
    }));
    auto ended = over.get_future();
    if (ended.wait_for(d.between(0, 30)) != std::future_status::ready) {
      std::promise<void> sent;
      asio::post(own.get_executor(), [&] {
        signal.emit(asio::cancellation_type::all);
        sent.set_value();
      });
      sent.get_future().wait();
    }
    ended.wait();
  }
}

// Closes its client while its callers wait.
void closing(arena& s) {
  for (dice d(3); !s.ends;) {
    client own(s.server.uri(), steady_config());
    auto const lock = own.get_fair_lock(s.name);
    // A lease that is kept would be left to its end.
    std::promise<void> a, b;
    lock.async_acquire([&a](error_code, lease) { a.set_value(); });
    lock.async_acquire([&b](error_code, lease) { b.set_value(); });
    std::this_thread::sleep_for(d.between(1, 40));
    own.close();
    a.get_future().wait();
    b.get_future().wait();
  }
}

// Another library, with a clock of its own; now and then it goes without a word.
void another_library(arena& s, std::string const& field, milliseconds clock_off) {
  redisson_fair one(s.server, s.name, field, clock_off);
  one.subscribe();
  dice d(4);
  for (int turn = 0; !s.ends; ++turn) {
    bool const leaves = turn % 10 == 9;
    auto const end = clock::now() + (leaves ? d.between(1, 30) : milliseconds(patience));
    bool held = one.acquire();
    while (!held && clock::now() < end && !s.ends) {
      // It sleeps for the hint; one of zero it polls, here a little slower than Redisson.
      one.hear(std::max(1ms, std::min<milliseconds>(milliseconds(one.hint()), 100ms)));
      held = one.acquire();
    }
    if (held) {
      s.turn();
      one.unlock();
    } else {
      one.give_up();
    }
  }
}

// Waits in a process of its own until that is killed.
struct mortal {
  explicit mortal(arena const& s)
      : process([uri = s.server.uri(), name = s.name](child_process::channel& up) {
          up.hear();
          client own(uri, steady_config());
          up.say(own.id());
          auto waiting = own.get_fair_lock(name).async_acquire({.lease = 300ms}, asio::use_future);
          waiting.wait();
          up.hear(1h);
          return 0;
        }) {}
  child_process process;
};

}  // namespace

// First, as it forks: later this process may have threads that Asio keeps.
TEST_CASE("fair lock: eight equal clients of four processes get equal shares", "[stress][fair]") {
  constexpr int processes = 4, clients_each = 2;
  redis_server server;
  auto const time = length(4s);
  std::vector<std::unique_ptr<child_process>> all;
  for (int i = 0; i < processes; ++i)
    all.push_back(std::make_unique<child_process>([uri = server.uri(), time](child_process::channel& up) {
      std::vector<long> turns(clients_each);
      std::atomic<bool> ends = false;
      std::vector<std::jthread> callers;
      std::latch ready(clients_each + 1), begin(clients_each + 1);
      for (auto& mine : turns)
        callers.emplace_back([&] {
          client own(uri, steady_config());
          auto const lock = own.get_fair_lock("shares");
          static_cast<void>(lock.is_locked());  // connected before the race begins
          ready.arrive_and_wait();
          begin.arrive_and_wait();
          for (; !ends; ++mine) {
            std::scoped_lock const guard(lock);
            hold_for_a_moment();
          }
        });
      ready.arrive_and_wait();
      up.say("ready");
      up.hear();
      begin.arrive_and_wait();
      std::this_thread::sleep_for(time);
      ends = true;
      callers.clear();
      std::string line;
      for (long const mine : turns) line += std::to_string(mine) + " ";
      up.say(line);
      return 0;
    }));
  for (auto& one : all) REQUIRE(one->talk().hear() == "ready");
  for (auto& one : all) one->talk().say("go");
  double sum = 0, squares = 0;
  std::string shares;
  for (auto& one : all) {
    auto const line = one->talk().hear(time + patience);
    shares += line;
    std::istringstream words(line);
    int count = 0;
    for (double turns = 0; words >> turns; ++count) {
      sum += turns;
      squares += turns * turns;
    }
    CHECK(count == clients_each);
  }
  double const index = sum * sum / (processes * clients_each * squares);
  std::cout << "shares " << shares << "Jain's index " << index << ", " << sum / double(time.count())
            << " acquisitions per second\n";
  CHECK(server.admin().calls("lpop") == 0);  // nobody alive was put out of the queue
  CHECK(index >= 0.99);
  CHECK(sum >= 100);
}

TEST_CASE("fair lock: with dying, cancelling and impatient waiters and clocks apart it does not stand free",
          "[stress][fair]") {
  arena s;
  milliseconds const time = length(6s);
  std::vector<std::unique_ptr<mortal>> dying;
  for (auto i = 0; i < 1 + time / 2s; ++i) dying.push_back(std::make_unique<mortal>(s));
  lock_watch watch(s.server, s.name);
  std::vector<std::jthread> callers;
  for (int i = 0; i < 2; ++i) callers.emplace_back([&] { takes_its_time(s); });
  callers.emplace_back([&] { impatient(s); });
  callers.emplace_back([&] { cancelling(s); });
  callers.emplace_back([&] { closing(s); });
  callers.emplace_back([&] { another_library(s, "java:1", 2s); });
  callers.emplace_back([&] { another_library(s, "java:2", -2s); });
  auto const begin = clock::now();
  auto admin = s.server.admin();
  int killed = 0, came = 0;
  for (auto& one : dying) {
    one->process.talk().say("go");
    auto const id = one->process.talk().hear();
    // As soon as it stands in the queue it is gone; it may have had its turn before that was seen.
    came += wait_until(
        [&] {
          for (auto const& waiter : admin.ok("LRANGE", "redisson_lock_queue:{shared}", 0, -1).elements)
            if (waiter.text.starts_with(id)) return true;
          return false;
        },
        1s);
    one->process.send_signal(SIGKILL);
    killed += one->process.wait() == 128 + SIGKILL;
    std::this_thread::sleep_until(begin + (&one - dying.data() + 1) * time / dying.size());
  }
  s.ends = true;
  auto const found = watch.stop();
  callers.clear();
  std::cout << s.turns << " turns, " << found.free.size() << " times free while somebody waited, 99 % for less than "
            << found.percentile(0.99).count() << " us, at most " << found.longest().count() << " us; " << killed
            << " killed, " << came << " of them in the queue\n";
  CHECK(killed == static_cast<int>(dying.size()));
  CHECK(came > 0);
  CHECK(found.free.size() >= 100);
  CHECK(found.percentile(0.99) < 50ms * slowness);
  CHECK(found.longest() < 2s * slowness);
}

}  // namespace stress_fair_shares
