// The non-reentrant lock on a real server, beside what kind_family_test.cpp shows of it.
#include <latchkey/latchkey.hpp>
#include <support/catch.hpp>
#include <support/errors.hpp>
#include <support/worlds.hpp>

#include <boost/asio/use_future.hpp>

#include <future>
#include <map>
#include <string>

using namespace latchkey;
using namespace latchkey::test;

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

TEST_CASE("non-reentrant lock: a reentrant lock of the name and it keep each other out", "[server][kind]") {
  once_only w;
  client other(common_server().uri(), steady_config());
  auto const theirs = other.get_lock(w.name);
  theirs.lock();
  CHECK_FALSE(w.lock.try_lock());
  auto waiter = w.lock.async_acquire(asio::use_future);
  REQUIRE(w.log.wait_for(event_type::waiting, w.name));
  theirs.unlock();
  lease held = value_of(std::move(waiter));
  CHECK_FALSE(theirs.try_lock());
  CHECK(held.release() == release_result::released);
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
