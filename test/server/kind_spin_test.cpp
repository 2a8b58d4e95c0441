// The spin lock on a real server, beside what kind_family_test.cpp shows of it.
#include <latchkey/latchkey.hpp>
#include <support/catch.hpp>
#include <support/command_counter.hpp>
#include <support/errors.hpp>
#include <support/worlds.hpp>

#include <boost/asio/use_future.hpp>

#include <atomic>
#include <future>
#include <map>
#include <string>
#include <vector>

using namespace latchkey;
using namespace latchkey::test;

namespace {

struct spinning : common_world {
  distributed_lock lock = own.get_spin_lock(name);
};

}  // namespace

TEST_CASE("spin lock: it is reentrant, and on the server a hash as the reentrant lock's", "[server][kind]") {
  spinning w;
  w.lock.lock();
  CHECK(w.lock.try_lock());
  CHECK(w.admin.hash(w.name) == std::map<std::string, std::string>{{w.field(owner::this_thread()), "2"}});
  CHECK(w.admin.integer("PTTL", w.name) > 20'000);
  w.lock.unlock();
  CHECK(w.lock.hold_count() == 1);
  w.lock.unlock();
  CHECK(w.admin.integer("EXISTS", w.name) == 0);
}

TEST_CASE("spin lock: nothing is published and nothing is listened to", "[server][kind]") {
  private_world w({}, {.tcp = true});
  client other(w.server.uri(), steady_config());
  auto const lock = w.own.get_spin_lock("spin");
  auto const theirs = other.get_spin_lock("spin");
  command_counter counter(w.server);
  auto listener = w.server.admin();
  listener.ok("PSUBSCRIBE", "*");
  theirs.lock();
  auto waiter = lock.async_acquire(asio::use_future);
  REQUIRE(w.log.wait_for(event_type::waiting, "spin"));
  theirs.unlock();
  lease held = value_of(std::move(waiter));
  theirs.force_unlock();
  CHECK(held.release() == release_result::expired);
  auto const sent = counter.take();
  CHECK(sent.count("SUBSCRIBE") == 0);
  CHECK(sent.count("EVALSHA") == 1);
  w.admin.ok("PUBLISH", "end", "end");
  CHECK(listener.receive().elements.at(2).text == "end");  // the first that was heard
}

TEST_CASE("spin lock: a waiter finds a free key within the longest pause", "[server][kind]") {
  spinning w;
  w.admin.ok("HSET", w.name, "somebody:1", 1);
  w.admin.ok("PEXPIRE", w.name, 600'000);
  auto waiter = w.lock.async_acquire(asio::use_future);
  auto const tries = [&] { return w.own.snapshot().scripts; };
  REQUIRE(wait_until([&] { return tries() >= 12; }));  // the pauses have grown to the longest
  auto const before = tries();
  stopwatch since;
  REQUIRE(wait_until([&] { return tries() >= before + 5; }));
  CHECK(since.passed() >= 4 * 64ms);
  w.admin.ok("DEL", w.name);
  stopwatch freed;
  lease held = value_of(std::move(waiter));
  CHECK(held.held());
  CHECK(freed.passed() < 129ms + 1s * slowness);
}

TEST_CASE("spin lock: many callers of one client are one who looks", "[server][kind]") {
  spinning w;
  w.admin.ok("HSET", w.name, "somebody:1", 1);
  w.admin.ok("PEXPIRE", w.name, 600'000);
  stopwatch since;
  std::vector<std::future<lease>> all;
  for (int i = 0; i < 100; ++i) all.push_back(w.lock.async_acquire({.wait = 1s}, asio::use_future));
  for (auto& one : all) CHECK_FALSE(value_of(std::move(one)));
  // One look each 64 ms or more, from the first call to the end of the last, and the short pauses that come before.
  CHECK(w.own.snapshot().scripts <= static_cast<std::uint64_t>(since.passed() / 64ms) + 12);
  w.admin.ok("DEL", w.name);
}

TEST_CASE("spin lock: a reentrant lock of the name and it keep each other out", "[server][kind]") {
  spinning w;
  client other(common_server().uri(), steady_config());
  auto const theirs = other.get_lock(w.name);
  theirs.lock();
  auto waiter = w.lock.async_acquire(asio::use_future);
  REQUIRE(w.log.wait_for(event_type::waiting, w.name));
  theirs.unlock();
  lease held = value_of(std::move(waiter));
  CHECK_FALSE(theirs.try_lock());
  CHECK(held.release() == release_result::released);
}

TEST_CASE("spin lock: the waiter of one process has its turn beside a process that never stops", "[server][kind]") {
  spinning w;
  client other(common_server().uri(), steady_config());
  auto const theirs = other.get_spin_lock(w.name);
  std::atomic<bool> stop{false};
  auto const busy = [&] {
    while (!stop) {
      theirs.lock();
      theirs.unlock();
    }
  };
  std::vector<std::future<void>> all;
  for (int i = 0; i < 4; ++i) all.push_back(std::async(std::launch::async, busy));
  REQUIRE(wait_until([&] { return other.snapshot().handed_off > 10; }));
  for (int i = 0; i < 5; ++i) {
    CHECK(w.lock.try_lock(patience));
    w.lock.unlock();
  }
  stop = true;
  for (auto& one : all) value_of(std::move(one));
}
