// The fenced lock on a real server, beside what kind_family_test.cpp shows of it.
#include <latchkey/latchkey.hpp>
#include <support/catch.hpp>
#include <support/errors.hpp>
#include <support/fault_proxy.hpp>
#include <support/run_coro.hpp>
#include <support/worlds.hpp>

#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>

#include <algorithm>
#include <future>
#include <map>
#include <string>
#include <vector>

using namespace latchkey;
using namespace latchkey::test;

namespace {

struct fenced_world : common_world {
  distributed_lock lock = own.get_fenced_lock(name);
  std::string counter = "redisson_lock_token:{" + name + "}";
  std::uint64_t next() { return lock.acquire().fencing_token().value(); }
};

}  // namespace

TEST_CASE("fenced lock: every grant has the next token, and re-entry too", "[server][kind]") {
  fenced_world w;
  CHECK(w.lock.get_token() == 0);
  lease a = w.lock.acquire();
  CHECK(a.fencing_token() == 1);
  lease again = w.lock.acquire({.owner = a.owner()});
  CHECK(again.fencing_token() == 2);
  CHECK(a.fencing_token() == 1);
  CHECK(w.lock.hold_count(a.owner()) == 2);
  CHECK(w.lock.get_token() == 2);
  CHECK(again.release() == release_result::still_held);
  CHECK(a.release() == release_result::released);
  CHECK(w.next() == 3);
  w.lock.lock();  // the plain members move the counter as Redisson's do
  CHECK(w.lock.get_token() == 4);
  w.lock.unlock();
  CHECK(value_of(w.lock.async_get_token(asio::use_future)) == 4);
  CHECK(run_coro(w.lock.async_get_token(asio::use_awaitable)) == 4);
}

TEST_CASE("fenced lock: the counter is Redisson's, has no time to live, and only grants move it", "[server][kind]") {
  fenced_world w;
  client other(common_server().uri(), steady_config());
  auto const theirs = other.get_fenced_lock(w.name);
  lease held = w.lock.acquire();
  CHECK(w.admin.hash(w.name) == std::map<std::string, std::string>{{w.field(held.owner()), "1"}});
  CHECK(w.admin.text("GET", w.counter) == "1");
  CHECK(w.admin.integer("PTTL", w.counter) == -1);
  CHECK_FALSE(theirs.try_lock());
  CHECK_FALSE(theirs.try_lock(brief_wait));
  CHECK(held.extend(60s));
  CHECK(w.admin.text("GET", w.counter) == "1");
  CHECK(theirs.force_unlock());
  CHECK(w.admin.text("GET", w.counter) == "1");
  CHECK(theirs.acquire().fencing_token() == 2);
  CHECK(held.release() == release_result::expired);
  auto const braced = w.own.get_fenced_lock("{" + w.name + "}:part");
  braced.lock();
  CHECK(w.admin.text("GET", "redisson_lock_token:{" + w.name + "}:part") == "1");
  braced.unlock();
}

TEST_CASE("fenced lock: tokens rise over deletions of the lock's key, hand-offs and other clients", "[server][kind]") {
  fenced_world w;
  client other(common_server().uri(), steady_config());
  auto const theirs = other.get_fenced_lock(w.name);
  std::vector<std::uint64_t> seen;
  for (int i = 0; i < 20; ++i) {
    lease held = (i % 2 ? theirs : w.lock).acquire();
    seen.push_back(held.fencing_token().value());
    if (i % 3 == 0) w.admin.ok("DEL", w.name);
  }
  // Whether a release hands off depends on what the waiter is about to hear from the server just then.
  for (int i = 0; i < 100 && w.own.snapshot().handed_off == 0; ++i) {
    lease first = w.lock.acquire();
    auto waiter = w.lock.async_acquire(asio::use_future);
    REQUIRE(wait_until([&] { return w.own.snapshot().waiting == 1; }));
    seen.push_back(first.fencing_token().value());
    CHECK(first.release() == release_result::released);
    lease second = value_of(std::move(waiter));
    seen.push_back(second.fencing_token().value());
    CHECK(second.release() == release_result::released);
  }
  CHECK(w.own.snapshot().handed_off >= 1);
  CHECK(std::is_sorted(seen.begin(), seen.end()));
  CHECK(std::adjacent_find(seen.begin(), seen.end()) == seen.end());
  CHECK(seen.back() == w.lock.get_token());
}

TEST_CASE("fenced lock: tokens beyond 2^53 are exact", "[server][kind]") {
  fenced_world w;
  w.admin.ok("SET", w.counter, "9007199254740993");
  CHECK(w.next() == 9'007'199'254'740'994);
  CHECK(w.next() == 9'007'199'254'740'995);
  w.admin.ok("SET", w.counter, "9223372036854775805");
  lease held = w.lock.acquire();
  CHECK(held.fencing_token() == 9'223'372'036'854'775'806);
  auto waiter = w.lock.async_acquire(asio::use_future);
  REQUIRE(w.log.wait_for(event_type::waiting, w.name));
  CHECK(held.release() == release_result::released);
  CHECK(value_of(std::move(waiter)).fencing_token() == 9'223'372'036'854'775'807);
  CHECK(w.lock.get_token() == 9'223'372'036'854'775'807);
}

TEST_CASE("fenced lock: case 34: without a token nobody gets the lock", "[server][kind][case-34]") {
  fenced_world w;
  struct row {
    char const* content;
    errc code;
    char const* words;
  };
  auto const [content, code, words] = GENERATE(values<row>({
      {"9223372036854775807", errc::server_error, "overflow"},
      {"some text", errc::server_error, "not an integer"},
      {"-7", errc::server_error, "below zero"},
      {nullptr, errc::wrong_type, "WRONGTYPE"},
  }));
  if (content)
    w.admin.ok("SET", w.counter, content);
  else
    w.admin.ok("RPUSH", w.counter, "x");
  auto const refused = thrown_by([&] { w.lock.lock(); });
  CHECK(refused.code() == code);
  CHECK(refused.server_text().find(words) != std::string::npos);
  CHECK(error_of([&] { return w.lock.try_lock(1s); }) == code);
  CHECK(error_in(w.lock.async_acquire(asio::use_future)) == code);
  CHECK(w.admin.integer("EXISTS", w.name) == 0);
  CHECK(w.own.snapshot().held == 0);
  w.admin.ok("DEL", w.counter);
  CHECK(w.next() == 1);  // deleted, and begun again
}

TEST_CASE("fenced lock: case 34: where a re-entry has no token the outer hold stays as it was", "[server][kind]") {
  fenced_world w;
  lease held = w.lock.acquire({.lease = 60s});
  w.admin.ok("SET", w.counter, "text");
  CHECK(error_of([&] { return w.lock.acquire({.lease = 600s, .owner = held.owner()}); }) == errc::server_error);
  CHECK(w.lock.hold_count(held.owner()) == 1);
  CHECK(w.admin.integer("PTTL", w.name) <= 60'000);
  CHECK(error_of([&] { return w.lock.get_token(); }) == errc::server_error);
  CHECK(held.release() == release_result::released);
}

TEST_CASE("fenced lock: case 34: where the next one has no token the release goes on", "[server][kind]") {
  fenced_world w;
  lease held = w.lock.acquire();
  auto waiter = w.lock.async_acquire(asio::use_future);
  REQUIRE(w.log.wait_for(event_type::waiting, w.name));
  w.admin.ok("SET", w.counter, "text");
  CHECK(held.release() == release_result::released);
  CHECK(error_in(std::move(waiter)) == errc::server_error);
  CHECK(w.admin.integer("EXISTS", w.name) == 0);
}

TEST_CASE("fenced lock: case 34: a repeated request that finds its grant and no token takes the grant away",
          "[server][kind]") {
  fenced_world w;
  auto const me = owner::make();
  auto const earlier_copy_ran = [&] {
    // In one step: a try of the waiter may be on its way.
    w.admin.ok("EVAL",
               "redis.call('del', KEYS[1]) redis.call('hset', KEYS[1], ARGV[1], 1) "
               "redis.call('pexpire', KEYS[1], 60000) return redis.call('set', KEYS[2], 'text')",
               2, w.name, w.counter, w.field(me));
  };
  earlier_copy_ran();
  CHECK(error_in(w.lock.async_try_lock(me, asio::use_future)) == errc::server_error);
  CHECK(w.admin.integer("EXISTS", w.name) == 0);
  w.admin.ok("DEL", w.counter);
  lease held = w.lock.acquire();
  auto waiter = w.lock.async_lock(me, asio::use_future);
  REQUIRE(w.log.wait_for(event_type::waiting, w.name));
  earlier_copy_ran();
  CHECK(held.release() == release_result::expired);
  CHECK(error_in(std::move(waiter)) == errc::server_error);
  CHECK(w.admin.integer("EXISTS", w.name) == 0);
}

TEST_CASE("fenced lock: a token that was told too late is not used, and the one that is used is above it",
          "[server][kind]") {
  fenced_world w;
  fault_proxy proxy(common_server().where());
  event_log log;
  client own(proxy.uri(), quick_config(log));
  auto const lock = own.get_fenced_lock(w.name);
  CHECK(lock.acquire({.wait = 10s}).fencing_token() == 1);
  REQUIRE(wait_until([&] { return !w.lock.is_locked(); }));
  proxy.swallow_replies(true);
  auto waiter = lock.async_acquire({.wait = patience}, asio::use_future);
  REQUIRE(wait_until([&] { return w.lock.get_token() == 2; }));
  REQUIRE(wait_until([&] { return proxy.swallowed() >= 1; }));
  proxy.swallow_replies(false);
  lease held = value_of(std::move(waiter));
  REQUIRE(held.held());
  CHECK(held.fencing_token().value() > 2);
  CHECK(held.fencing_token() == w.lock.get_token());
}

TEST_CASE("fenced lock: only a fenced lock has tokens", "[server][kind]") {
  fenced_world w;
  for (auto const& other : {w.own.get_lock(w.name), w.own.get_spin_lock(w.name), w.own.get_plain_lock(w.name)}) {
    CHECK(error_of([&] { return other.get_token(); }) == errc::bad_argument);
    CHECK(error_in(other.async_get_token(asio::use_future)) == errc::bad_argument);
  }
  CHECK(w.own.get_lock(new_name()).acquire().fencing_token() == std::nullopt);
  CHECK(lease().fencing_token() == std::nullopt);
  w.admin.ok("RPUSH", w.counter, "x");
  CHECK(error_of([&] { return w.lock.get_token(); }) == errc::wrong_type);
  w.admin.ok("DEL", w.counter);
}

TEST_CASE("fenced lock: a missing counter begins at the server's time if that is asked for", "[server][kind]") {
  fenced_world w;
  auto settings = steady_config();
  settings.seed_fencing_token = true;
  client own(common_server().uri(), settings);
  auto const lock = own.get_fenced_lock(w.name);
  auto const micros = [&] { return static_cast<std::uint64_t>(w.admin.now_us()); };
  auto const before = micros();
  auto const first = lock.acquire().fencing_token().value();
  CHECK(first >= before);
  CHECK(first <= micros());
  CHECK(lock.acquire().fencing_token() == first + 1);
  w.admin.ok("DEL", w.counter);
  CHECK(lock.acquire().fencing_token().value() > first + 1);
  w.admin.ok("SET", w.counter, 7);
  CHECK(lock.acquire().fencing_token() == 8);
  auto const unseeded = client(common_server().uri(), steady_config()).get_fenced_lock(w.name);
  CHECK(lock != unseeded);
}
