// What permits and latches cost in commands: counted with MONITOR, whatever a client sends.
#include <latchkey/latchkey.hpp>
#include <support/catch.hpp>
#include <support/command_counter.hpp>
#include <support/errors.hpp>
#include <support/worlds.hpp>

#include <boost/asio/use_future.hpp>

#include <iostream>
#include <map>
#include <string>
#include <vector>

using namespace latchkey;
using namespace latchkey::test;

namespace {

constexpr int times = 50;

config unpinged() {
  auto settings = steady_config();
  settings.ping_interval = 0ms;
  return settings;
}

struct counting_world : private_world {
  counting_world() : private_world(unpinged(), {.tcp = true}) {}

  command_counter counter{server};

  // What `call` sends each time, once the connections are up and the server knows the scripts.
  template <class Call>
  std::map<std::string, int> cost(Call const& call) {
    wait_until([&] {
      call();
      call();
      auto const sent = counter.take();
      return sent.size() == 1 && sent.contains("EVALSHA");
    });
    for (int i = 0; i < times; ++i) call();
    return counter.take();
  }
};

std::map<std::string, int> scripts(int each) { return {{"EVALSHA", each * times}}; }

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
  client other(w.server.uri(), unpinged());
  auto const mine = w.own.get_semaphore("s"), theirs = other.get_semaphore("s");
  // Two waiters of the other client are asleep; a release wakes one of them, who says that nothing is left.
  std::vector<std::future<void>> waiting;
  for (int i = 0; i < times + 3; ++i) waiting.push_back(theirs.async_acquire(asio::use_future));
  REQUIRE(wait_until([&] { return w.admin.ok("PUBSUB", "NUMSUB", "redisson_sc:{s}").elements.at(1).integer == 1; }));
  std::size_t served = 0;
  auto const serve = [&] {
    mine.release();
    value_of(std::move(waiting[served++]));
  };
  serve();
  serve();
  REQUIRE(wait_until([&] { return w.counter.take().empty(); }));
  stopwatch since;
  for (int i = 0; i < times; ++i) serve();
  auto const sent = w.counter.take();
  // Meanwhile the next one may look again, once a second.
  int const looks = 1 + static_cast<int>(since.passed() / 1s);
  CHECK(sent.size() == 1);
  CHECK(sent.at("EVALSHA") >= 2 * times);
  CHECK(sent.at("EVALSHA") <= 2 * times + looks);
  std::cout << "semaphore, contended: " << sent.at("EVALSHA") << " EVALSHA for " << times << " releases and grants\n";
  mine.release();
  value_of(std::move(waiting[served]));
}
