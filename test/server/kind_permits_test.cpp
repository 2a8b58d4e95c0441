// Answers that are lost before or after the request ran: nothing counts twice, nothing is forgotten.
#include <latchkey/latchkey.hpp>
#include <support/catch.hpp>
#include <support/child_process.hpp>
#include <support/errors.hpp>
#include <support/fault_proxy.hpp>
#include <support/redis_server.hpp>
#include <support/worlds.hpp>

#include <boost/asio/use_future.hpp>

#include <signal.h>

#include <functional>
#include <iostream>
#include <map>
#include <string>
#include <vector>

using namespace latchkey;
using namespace latchkey::test;

namespace {

struct losing_world {
  losing_world() {
    auto const lock = own.get_lock("warm");
    // Both lanes are up, and the server knows the scripts of a lock.
    wait_until([&] {
      lock.lock();
      lock.unlock();
      return proxy.open() >= 2;
    });
  }
  static config settings() {
    auto made = steady_config();
    made.retry_delay = 20ms;
    return made;
  }
  std::string value(char const* key) { return admin.text("GET", key); }

  redis_server server;
  fault_proxy proxy{server.where()};
  raw_redis admin = server.admin();
  client own{proxy.uri(), settings()};
  semaphore permits = own.get_semaphore("s");
  permit_semaphore leased = own.get_permit_semaphore("p");
  count_down_latch latch = own.get_count_down_latch("l");
};

// One call, made with its answer or the request itself cut off; `prepare` runs before, undisturbed, and runs the
// script once so that the server knows it.
struct step {
  char const* name;
  std::function<void(losing_world&)> prepare;
  std::function<void(losing_world&)> call;
  std::function<void(losing_world&)> check;
};

std::string taken_id;

step const lossy_steps[] = {
    {"semaphore acquire",
     [](losing_world& w) {
       w.permits.try_set_permits(5);
       w.permits.acquire();
     },
     [](losing_world& w) { w.permits.acquire(2); }, [](losing_world& w) { CHECK(w.value("s") == "2"); }},
    {"semaphore try_acquire of the last", [](losing_world& w) { w.permits.try_set_permits(1); },
     [](losing_world& w) { CHECK(w.permits.try_acquire()); }, [](losing_world& w) { CHECK(w.value("s") == "0"); }},
    {"semaphore release", [](losing_world& w) { w.permits.release(); }, [](losing_world& w) { w.permits.release(3); },
     [](losing_world& w) { CHECK(w.value("s") == "4"); }},
    {"semaphore add_permits", [](losing_world& w) { w.permits.add_permits(2); },
     [](losing_world& w) { w.permits.add_permits(3); }, [](losing_world& w) { CHECK(w.value("s") == "5"); }},
    {"semaphore drain_permits",
     [](losing_world& w) {
       w.permits.drain_permits();
       w.permits.release(7);
     },
     [](losing_world& w) { CHECK(w.permits.drain_permits() == 7); },
     [](losing_world& w) { CHECK(w.value("s") == "0"); }},
    {"semaphore try_set_permits", [](losing_world& w) { w.own.get_semaphore("x").try_set_permits(1); },
     [](losing_world& w) { CHECK(w.permits.try_set_permits(4)); }, [](losing_world& w) { CHECK(w.value("s") == "4"); }},
    {"permit acquire",
     [](losing_world& w) {
       w.leased.try_set_permits(3);
       w.leased.release(w.leased.acquire());
     },
     [](losing_world& w) { taken_id = w.leased.acquire(); },
     [](losing_world& w) {
       CHECK(w.value("p") == "2");
       CHECK(w.leased.acquired_permits() == 1);
       CHECK(w.leased.try_release(taken_id));
     }},
    {"permit try_release",
     [](losing_world& w) {
       w.leased.try_set_permits(3);
       w.leased.release(w.leased.acquire());
       taken_id = w.leased.acquire();
     },
     [](losing_world& w) { CHECK(w.leased.try_release(taken_id)); },
     [](losing_world& w) { CHECK(w.value("p") == "3"); }},
    {"permit set_permits",
     [](losing_world& w) {
       w.leased.set_permits(2);
       taken_id = w.leased.acquire();
     },
     [](losing_world& w) { w.leased.set_permits(6); }, [](losing_world& w) { CHECK(w.value("p") == "5"); }},
    {"permit add_permits", [](losing_world& w) { w.leased.add_permits(1); },
     [](losing_world& w) { w.leased.add_permits(2); }, [](losing_world& w) { CHECK(w.value("p") == "3"); }},
    {"permit try_set_permits", [](losing_world& w) { w.own.get_permit_semaphore("x").try_set_permits(1); },
     [](losing_world& w) { CHECK(w.leased.try_set_permits(4)); }, [](losing_world& w) { CHECK(w.value("p") == "4"); }},
    {"permit released by its object", [](losing_world& w) { w.leased.try_set_permits(3); },
     [](losing_world& w) {
       permit one = w.leased.acquire_permit();
       CHECK(one);
       CHECK(one.release() == release_result::released);
     },
     [](losing_world& w) { CHECK(w.value("p") == "3"); }},
    {"latch count_down",
     [](losing_world& w) {
       w.latch.try_set_count(5);
       w.latch.count_down();
     },
     [](losing_world& w) { w.latch.count_down(); }, [](losing_world& w) { CHECK(w.latch.count() == 3); }},
    {"latch try_set_count", [](losing_world& w) { w.own.get_count_down_latch("x").try_set_count(1); },
     [](losing_world& w) { CHECK(w.latch.try_set_count(2)); }, [](losing_world& w) { CHECK(w.latch.count() == 2); }},
    {"latch wait", [](losing_world& w) { w.latch.wait(); }, [](losing_world& w) { w.latch.wait(); },
     [](losing_world& w) { CHECK(w.latch.count() == 0); }},
};

}  // namespace

TEST_CASE("permits and latches: a request whose answer was lost counts once", "[server][kind]") {
  for (auto way : {fault_proxy::way::replies, fault_proxy::way::requests})
    for (auto const& one : lossy_steps) {
      INFO(one.name << (way == fault_proxy::way::replies ? ", after it ran" : ", before it ran"));
      losing_world w;
      one.prepare(w);
      w.proxy.cut_after(way, 0);
      one.call(w);
      CHECK(w.proxy.cut_happened());
      one.check(w);
      CHECK(w.own.snapshot().kills >= 1);
    }
}

TEST_CASE("semaphore: permits are gone with a process that was killed, as Redisson's, and no more", "[server][kind]") {
  redis_server const server;
  server.admin().ok("SET", "pool", 3);
  child_process victim([&](child_process::channel& up) {
    client const own(server.uri(), steady_config());
    own.get_semaphore("pool").acquire();
    up.say("inside");
    up.hear();
    return 0;
  });
  REQUIRE(victim.talk().hear() == "inside");
  victim.send_signal(SIGKILL);
  CHECK(victim.wait() == 128 + SIGKILL);
  client const own(server.uri(), steady_config());
  CHECK(own.get_semaphore("pool").available_permits() == 2);
}

// What permits and latches cost in commands: counted with MONITOR, whatever a client sends.

namespace {

constexpr int calls_counted = 50;

struct counting_world : counted_world {
  // What `call` sends each time, once the connections are up and the server knows the scripts.
  template <class Call>
  std::map<std::string, int> cost(Call const& call) {
    wait_until([&] {
      call();
      call();
      auto const sent = counter.take();
      return sent.size() == 1 && sent.contains("EVALSHA");
    });
    for (int i = 0; i < calls_counted; ++i) call();
    return counter.take();
  }
};

std::map<std::string, int> scripts(int each) { return {{"EVALSHA", each * calls_counted}}; }

}  // namespace

TEST_CASE("permits and latches: one EVALSHA each for taking and giving back what is free", "[server][kind]") {
  counting_world w;
  auto const permits = w.own.get_semaphore("s");
  auto const leased = w.own.get_permit_semaphore("p");
  auto const latch = w.own.get_count_down_latch("l");
  permits.try_set_permits(4);
  leased.try_set_permits(4);
  CHECK(w.cost([&] {
    permits.acquire();
    permits.release();
  }) == scripts(2));
  CHECK(w.cost([&] {
    value_of(permits.async_acquire(2, asio::use_future));
    value_of(permits.async_release(2, asio::use_future));
  }) == scripts(2));
  CHECK(w.cost([&] { leased.release(leased.acquire(10s)); }) == scripts(2));
  CHECK(w.cost([&] { leased.acquire_permit().release(); }) == scripts(2));
  CHECK(w.cost([&] {
    latch.try_set_count(1);
    latch.count_down();
    latch.wait();
  }) == scripts(3));
  std::cout << "semaphore, permit semaphore, latch: 1 EVALSHA to take, 1 to give back\n";
}

TEST_CASE("permits: what is released goes to a waiter of another client with one EVALSHA each", "[server][kind]") {
  counting_world w;
  client other(w.server.uri(), unpinged_config());
  auto const mine = w.own.get_semaphore("s"), theirs = other.get_semaphore("s");
  // Two waiters of the other client are asleep; a release wakes one of them, who says that nothing is left.
  std::vector<std::future<void>> waiting;
  for (int i = 0; i < calls_counted + 3; ++i) waiting.push_back(theirs.async_acquire(asio::use_future));
  REQUIRE(wait_until([&] { return w.admin.listeners_at("redisson_sc:{s}") == 1; }));
  std::size_t served = 0;
  auto const serve = [&] {
    mine.release();
    value_of(std::move(waiting[served++]));
  };
  serve();
  serve();
  REQUIRE(wait_until([&] { return w.counter.take().empty(); }));
  stopwatch since;
  for (int i = 0; i < calls_counted; ++i) serve();
  auto const sent = w.counter.take();
  // Meanwhile the next one may look again, once a second.
  int const looks = 1 + static_cast<int>(since.passed() / 1s);
  CHECK(sent.size() == 1);
  CHECK(sent.at("EVALSHA") >= 2 * calls_counted);
  CHECK(sent.at("EVALSHA") <= 2 * calls_counted + looks);
  std::cout << "semaphore, contended: " << sent.at("EVALSHA") << " EVALSHA for " << calls_counted
            << " releases and grants\n";
  mine.release();
  value_of(std::move(waiting[served]));
}
