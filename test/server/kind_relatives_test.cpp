// The plain lock on a real server, beside what kind_family_test.cpp shows of it: other libraries on the same key, by
// the commands that they send.
#include <latchkey/latchkey.hpp>
#include <support/catch.hpp>
#include <support/errors.hpp>
#include <support/fault_proxy.hpp>
#include <support/redis_server.hpp>
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

// As redis-py's Lock, redsync and node-redlock do it: a value that nobody else has, deleted by whoever finds it there.
class other_library {
 public:
  explicit other_library(std::string key) : key_(std::move(key)) {}
  bool take(std::string const& value, milliseconds lease = 60s) {
    return admin_.command("SET", key_, value, "NX", "PX", lease.count()).text == "OK";
  }
  bool give_back(std::string const& value) {
    return admin_.integer(
               "EVAL", "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0",
               1, key_, value) == 1;
  }
  bool extend(std::string const& value, milliseconds lease) {
    return admin_.integer("EVAL",
                          "if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end return redis.call('pexpire', "
                          "KEYS[1], ARGV[2])",
                          1, key_, value, lease.count()) == 1;
  }

 private:
  std::string const key_;
  raw_redis admin_ = common_server().admin();
};

struct plain_world : common_world {
  distributed_lock lock = own.get_plain_lock(name);
  other_library others{name};
};

}  // namespace

TEST_CASE("plain lock: on the server it is a string with the owner's name and a time to live", "[server][kind]") {
  plain_world w;
  w.lock.lock();
  CHECK(w.admin.text("TYPE", w.name) == "string");
  CHECK(w.admin.text("GET", w.name) == w.field(owner::this_thread()));
  auto const left = w.admin.integer("PTTL", w.name);
  CHECK(left > 20'000);
  CHECK(left <= 30'000);
  w.lock.unlock();
  CHECK(w.admin.integer("EXISTS", w.name) == 0);
  w.lock.lock(5s);
  CHECK(w.admin.integer("PTTL", w.name) <= 5'000);
  w.lock.unlock();
}

TEST_CASE("plain lock: case 24: a second take by the owner is already_held at once, and nothing is changed",
          "[server][kind][case-24]") {
  plain_world w;
  w.lock.lock(60s);
  auto const sent = w.own.snapshot().scripts;
  CHECK(error_of([&] { w.lock.lock(); }) == errc::already_held);
  CHECK(error_of([&] { return w.lock.try_lock(1h); }) == errc::already_held);
  CHECK(error_in(w.lock.async_lock(owner::this_thread(), asio::use_future)) == errc::already_held);
  CHECK(w.own.snapshot().scripts == sent);
  CHECK(w.admin.integer("PTTL", w.name) > 50'000);
  w.lock.unlock();
}

TEST_CASE("plain lock: it keeps out other libraries, and they cannot end or extend its hold", "[server][kind]") {
  plain_world w;
  lease held = w.lock.acquire();
  CHECK_FALSE(w.others.take("abc"));
  CHECK_FALSE(w.others.give_back("abc"));
  CHECK_FALSE(w.others.extend("abc", 1ms));
  CHECK(w.lock.is_held_by(held.owner()));
  CHECK(held.release() == release_result::released);
  CHECK(w.others.take("abc"));
}

TEST_CASE("plain lock: a holder of another library keeps it out, and is left alone", "[server][kind]") {
  plain_world w;
  REQUIRE(w.others.take("abc"));
  CHECK_FALSE(w.lock.try_lock());
  CHECK_FALSE(w.lock.try_lock(brief_wait));
  CHECK_FALSE(w.lock.is_held_by_current_thread());
  CHECK(w.lock.hold_count() == 0);
  CHECK(w.lock.is_locked());
  CHECK(w.lock.remaining_time_to_live().value() > 50s);
  CHECK(error_of([&] { w.lock.unlock(); }) == errc::not_owner);
  CHECK(w.admin.text("GET", w.name) == "abc");
  CHECK(w.others.give_back("abc"));
  CHECK(w.lock.try_lock());
  w.lock.unlock();
}

TEST_CASE("plain lock: a waiter finds what another library gave back without a word", "[server][kind]") {
  plain_world w;
  REQUIRE(w.others.take("abc"));
  auto waiter = w.lock.async_acquire(asio::use_future);
  REQUIRE(w.log.wait_for(event_type::waiting, w.name));
  REQUIRE(wait_until([&] { return w.own.snapshot().scripts >= 10; }));  // the pauses have grown to the longest
  REQUIRE(w.others.give_back("abc"));
  stopwatch since;
  lease held = value_of(std::move(waiter));
  CHECK(held.held());
  CHECK(since.passed() < 257ms + 1s * slowness);
  CHECK_FALSE(w.others.take("abc"));
}

TEST_CASE("plain lock: while it waits it asks a few times a second at most", "[server][kind]") {
  plain_world w;
  REQUIRE(w.others.take("abc"));
  CHECK_FALSE(w.lock.try_lock(2s));
  CHECK(w.own.snapshot().scripts <= 2'000 / 128 + 12);
}

TEST_CASE("plain lock: waiters of another client are told by a message", "[server][kind]") {
  plain_world w;
  auto listener = common_server().admin();
  listener.ok("SUBSCRIBE", "latchkey_plain__channel:{" + w.name + "}");
  w.lock.lock();
  w.lock.unlock();
  CHECK(listener.receive().elements.at(2).text == "0");
  w.lock.lock();
  CHECK(w.lock.force_unlock());
  CHECK(listener.receive().elements.at(2).text == "0");
  auto const braced = w.own.get_plain_lock("{" + w.name + "}:part");
  auto second = common_server().admin();
  second.ok("SUBSCRIBE", "latchkey_plain__channel:{" + w.name + "}:part");
  braced.lock();
  braced.unlock();
  CHECK(second.receive().elements.at(2).text == "0");
}

TEST_CASE("plain lock: a holder without time to live is waited for, and warned about", "[server][kind]") {
  plain_world w;
  w.admin.ok("SET", w.name, "for ever");
  w.own.connect();
  CHECK_FALSE(w.lock.try_lock(brief_wait));
  CHECK(w.log.wait_for(event_type::no_time_to_live, w.name));
  CHECK(w.lock.remaining_time_to_live() == milliseconds::max());
  CHECK(w.lock.force_unlock());
  CHECK(w.lock.try_lock());
  w.lock.unlock();
}

TEST_CASE("plain lock: a hold that somebody overwrote is lost, and what he wrote stays", "[server][kind]") {
  plain_world w;
  lease held = w.lock.acquire();
  w.admin.ok("SET", w.name, "stolen", "PX", 60'000);
  CHECK_FALSE(held.extend(30s));
  CHECK_FALSE(held.held());
  CHECK(held.release() == release_result::expired);
  CHECK(w.admin.text("GET", w.name) == "stolen");
  w.admin.ok("DEL", w.name);
  lease second = w.lock.acquire();
  w.admin.ok("SET", w.name, "stolen", "PX", 60'000);
  CHECK(second.release() == release_result::expired);
  CHECK(w.admin.text("GET", w.name) == "stolen");
  CHECK(w.admin.integer("PTTL", w.name) > 0);
  w.admin.ok("DEL", w.name);
}

TEST_CASE("plain lock: a reentrant lock of the name is wrong_type, and the other way round", "[server][kind]") {
  plain_world w;
  client other(common_server().uri(), steady_config());
  auto const theirs = other.get_lock(w.name);
  w.lock.lock();
  CHECK(error_of([&] { return theirs.try_lock(); }) == errc::wrong_type);
  w.lock.unlock();
  theirs.lock();
  CHECK(error_of([&] { return w.lock.try_lock(); }) == errc::wrong_type);
  CHECK(theirs.hold_count() == 1);
  theirs.unlock();
}

TEST_CASE("plain lock: an acquire, an extension and a release whose answers are lost are repeated without harm",
          "[server][kind]") {
  plain_world w;
  fault_proxy proxy(common_server().where());
  client far(proxy.uri(), steady_config());
  auto const lock = far.get_plain_lock(w.name);
  static_cast<void>(lock.is_locked());
  auto const lose_answer = [&] { proxy.cut_after(fault_proxy::way::replies, 0); };
  lose_answer();
  lease held = lock.acquire({.wait = 10s, .lease = 60s});
  CHECK(proxy.cut_happened());
  REQUIRE(held.held());
  CHECK(w.admin.text("GET", w.name) == far.id() + ":" + to_string(held.owner()));
  lose_answer();
  CHECK(held.extend(100s));
  CHECK(w.admin.integer("PTTL", w.name) > 60'000);
  lose_answer();
  CHECK(held.release() == release_result::released);
  CHECK(w.admin.integer("EXISTS", w.name) == 0);
}

// The non-reentrant lock on a real server, beside what kind_family_test.cpp shows of it.

namespace {

struct once_only : common_world {
  distributed_lock lock = own.get_non_reentrant_lock(name);
};

}  // namespace

TEST_CASE("non-reentrant lock: case 24: a second take by the owner is already_held at once, and nothing is changed",
          "[server][kind][case-24]") {
  once_only w;
  w.lock.lock(60s);
  auto const before = w.admin.hash(w.name);
  auto const sent = w.own.snapshot().scripts;
  auto const me = owner::this_thread();
  CHECK(error_of([&] { w.lock.lock(); }) == errc::already_held);
  CHECK(error_of([&] { w.lock.lock(5s); }) == errc::already_held);
  CHECK(error_of([&] { return w.lock.try_lock(); }) == errc::already_held);
  CHECK(error_of([&] { return w.lock.try_lock(1h, 5s); }) == errc::already_held);
  CHECK(error_of([&] { return w.lock.acquire({.owner = me}); }) == errc::already_held);
  CHECK(error_in(w.lock.async_lock(me, asio::use_future)) == errc::already_held);
  CHECK(error_in(w.lock.async_try_lock(me, asio::use_future)) == errc::already_held);
  CHECK(w.own.snapshot().scripts == sent);
  CHECK(w.own.snapshot().held == 1);
  CHECK(w.admin.hash(w.name) == before);
  CHECK(w.admin.integer("PTTL", w.name) > 50'000);
  w.lock.unlock();
  CHECK(w.admin.integer("EXISTS", w.name) == 0);
}

TEST_CASE("non-reentrant lock: of two calls of one owner that wait the second is already_held", "[server][kind]") {
  once_only w;
  client other(common_server().uri(), steady_config());
  auto const theirs = other.get_non_reentrant_lock(w.name);
  theirs.lock();
  auto const me = owner::make();
  auto one = w.lock.async_acquire({.owner = me}, asio::use_future);
  auto two = w.lock.async_acquire({.owner = me}, asio::use_future);
  REQUIRE(wait_until([&] { return w.own.snapshot().waiting == 2; }));
  theirs.unlock();
  lease held = value_of(std::move(one));
  CHECK(error_in(std::move(two)) == errc::already_held);
  CHECK(w.lock.hold_count(me) == 1);
  CHECK(held.release() == release_result::released);
}

TEST_CASE(
    "non-reentrant lock: on the server it is a hash with the count 1, and a release is told on Redisson's channel",
    "[server][kind]") {
  once_only w;
  auto listener = common_server().admin();
  listener.ok("SUBSCRIBE", channel_of(w.name));
  w.lock.lock();
  CHECK(w.admin.hash(w.name) == std::map<std::string, std::string>{{w.field(owner::this_thread()), "1"}});
  auto const left = w.admin.integer("PTTL", w.name);
  CHECK(left > 20'000);
  CHECK(left <= 30'000);
  w.lock.unlock();
  CHECK(listener.receive().elements.at(2).text == "0");
}

TEST_CASE("non-reentrant lock: after a hold was lost its owner takes the lock again", "[server][kind]") {
  once_only w;
  w.lock.lock(brief_lease);
  REQUIRE(w.log.wait_for(event_type::lost, w.name));
  w.lock.lock();
  CHECK(w.lock.hold_count() == 1);
  w.lock.unlock();
  CHECK(w.admin.integer("EXISTS", w.name) == 0);
}

// The spin lock on a real server, beside what kind_family_test.cpp shows of it.

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
  // To nobody's success: the last look of all may also end without an answer in time.
  for (auto& one : all) try {
      lease const held = value_of(std::move(one));  // CHECK would take the exception for itself
      CHECK_FALSE(held.held());
    } catch (boost::system::system_error const& error) {
      CHECK(error.code() == errc::timeout);
    }
  // One look each 64 ms or more, from the first call to the end of the last, and the short pauses that come before.
  CHECK(w.own.snapshot().scripts <= static_cast<std::uint64_t>(since.passed() / 64ms) + 12);
  w.admin.ok("DEL", w.name);
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
