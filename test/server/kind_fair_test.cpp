// The fair lock on a real server: order, wire state, holds.
#include <latchkey/latchkey.hpp>
#include <support/catch.hpp>
#include <support/errors.hpp>
#include <support/redis_server.hpp>
#include <support/redisson_fair.hpp>
#include <support/rights.hpp>
#include <support/worlds.hpp>
#include <wire/scripts.hpp>

#include <boost/asio/use_future.hpp>

#include <future>
#include <string>
#include <vector>

using namespace latchkey;
using namespace latchkey::test;

using names = std::vector<std::string>;

TEST_CASE("fair lock: waiters of two clients are served in the order of their arrival", "[server][fair]") {
  fair_world w;
  client other(common_server().uri(), steady_config());
  auto const theirs = other.get_fair_lock(w.name);
  lease held = w.fair.acquire();
  std::vector<std::future<lease>> waiting;
  names arrived;
  for (int i = 0; i < 6; ++i) {
    auto const who = owner::make();
    waiting.push_back((i % 2 ? theirs : w.fair).async_acquire({.owner = who}, asio::use_future));
    arrived.push_back((i % 2 ? other.id() : w.own.id()) + ":" + to_string(who));
    REQUIRE(wait_until([&] { return w.line().size() == waiting.size(); }));
  }
  CHECK(w.line() == arrived);
  for (std::size_t i = 0; i < waiting.size(); ++i) {
    CHECK(held.release() == release_result::released);
    held = value_of(std::move(waiting[i]));
    CHECK(held.held());
    CHECK(w.line() == names(arrived.begin() + static_cast<int>(i) + 1, arrived.end()));
  }
  CHECK(held.release() == release_result::released);
  CHECK(w.nothing_left());
}

TEST_CASE("fair lock: a release passes it on inside the client only if that waiter is the first of all",
          "[server][fair]") {
  fair_world w;
  redisson_fair peer(common_server(), w.name, "java:1");
  lease held = w.fair.acquire();
  auto const a = owner::make(), b = owner::make();
  auto first = w.fair.async_acquire({.owner = a}, asio::use_future);
  REQUIRE(w.listening(a));
  CHECK_FALSE(peer.acquire());
  peer.subscribe();
  auto second = w.fair.async_acquire({.owner = b}, asio::use_future);
  REQUIRE(w.listening(b));
  auto const before = w.score("java:1");
  CHECK(value_of(w.fair.async_is_locked(asio::use_future)));  // answered behind the look of who has just subscribed
  held.release();
  held = value_of(std::move(first));
  CHECK(w.own.snapshot().handed_off == 1);
  CHECK(w.admin.hash(w.name) == fields{{w.field(a), "1"}});
  CHECK(w.line() == names{"java:1", w.field(b)});
  CHECK(w.score("java:1") == before - 300'000);
  held.release();
  REQUIRE(peer.hear(patience));
  CHECK(w.admin.integer("EXISTS", w.name) == 0);
  CHECK(w.line() == names{"java:1", w.field(b)});
  CHECK(peer.acquire());
  CHECK(peer.unlock() == 1);
  value_of(std::move(second)).release();
  CHECK(w.own.snapshot().handed_off == 1);
  CHECK(w.nothing_left());
}

TEST_CASE("fair lock: shows as Redisson's hash, list and sorted set, with Redisson's times", "[server][fair]") {
  fair_world w;
  w.fair.lock(20s);
  CHECK(w.admin.hash(w.name) == fields{{w.field(owner::this_thread()), "1"}});
  CHECK(w.admin.integer("PTTL", w.name) <= 20'000);
  CHECK(w.admin.integer("EXISTS", w.queue, w.scores) == 0);

  auto const a = owner::make(), b = owner::make(), c = owner::make();
  auto first = w.fair.async_acquire({.owner = a}, asio::use_future);
  REQUIRE(w.listening(a));
  auto second = w.fair.async_acquire({.wait = 7s, .owner = b}, asio::use_future);
  REQUIRE(w.listening(b));
  auto third = w.fair.async_acquire({.wait = 1h, .owner = c}, asio::use_future);
  REQUIRE(w.listening(c));
  CHECK(w.admin.text("TYPE", w.queue) == "list");
  CHECK(w.admin.text("TYPE", w.scores) == "zset");
  CHECK(w.admin.integer("PTTL", w.queue) == -1);
  CHECK(w.admin.integer("PTTL", w.scores) == -1);
  CHECK(w.line() == names{w.field(a), w.field(b), w.field(c)});
  CHECK(w.admin.integer("ZCARD", w.scores) == 3);
  // The first one's time begins when the holder's ends, each later one's when that of the one before it does.
  auto const slack = 1'000 * slowness;
  CHECK(w.score(a) <= w.now() + 20'000 + 300'000);
  CHECK(w.score(a) > w.now() + 20'000 + 300'000 - slack);
  CHECK(w.score(b) == w.score(a) + 7'000);
  // Nobody counts as alive for longer than the configured time.
  CHECK(w.score(c) == w.score(b) + 300'000);
  auto const before_b = w.score(b), before_c = w.score(c);
  w.fair.unlock();
  lease held = value_of(std::move(first));
  CHECK(w.score(b) == before_b - 300'000);
  CHECK(w.score(c) == before_c - 300'000);
  held.release();
  value_of(std::move(second)).release();
  value_of(std::move(third)).release();
  CHECK(w.nothing_left());
}

TEST_CASE("fair lock: a name with braces keeps them in all derived names", "[server][fair]") {
  fair_world w;
  auto const name = "{" + w.name + "}:part";
  auto const lock = w.own.get_fair_lock(name);
  lease held = lock.acquire();
  auto const who = owner::make();
  auto waiting = lock.async_acquire({.owner = who}, asio::use_future);
  auto const channel = "redisson_lock__channel:" + name + ":" + w.field(who);
  CHECK(wait_until([&] { return w.admin.listeners_at(channel) == 1; }));
  CHECK(w.admin.integer("LLEN", "redisson_lock_queue:" + name) == 1);
  CHECK(w.admin.integer("ZCARD", "redisson_lock_timeout:" + name) == 1);
  held.release();
  value_of(std::move(waiting)).release();
}

TEST_CASE("fair lock: try_lock without a wait never enters the queue, and never overtakes", "[server][fair]") {
  fair_world w;
  client other(common_server().uri(), steady_config());
  auto const theirs = other.get_fair_lock(w.name);
  lease held = w.fair.acquire();
  CHECK_FALSE(theirs.try_lock());
  CHECK_FALSE(theirs.try_lock(0ms));
  CHECK(w.line().empty());
  held.release();
  // Free, but somebody else is first.
  redisson_fair peer(common_server(), w.name, "peer:1");
  w.enter("peer:1", 300s);
  CHECK_FALSE(theirs.try_lock());
  CHECK(w.line() == names{"peer:1"});
  CHECK(peer.acquire());
  CHECK(peer.unlock() == 1);
  CHECK(theirs.try_lock());
  theirs.unlock();
  CHECK(w.nothing_left());
}

TEST_CASE("fair lock: an owner re-enters at once, also while others wait, and its time is never shortened",
          "[server][fair]") {
  fair_world w;
  w.fair.lock(60s);
  auto const who = owner::make();
  auto waiting = w.fair.async_acquire({.owner = who}, asio::use_future);
  REQUIRE(w.listening(who));
  CHECK(w.fair.try_lock());
  CHECK(w.fair.try_lock(1s, 5s));
  CHECK(w.fair.hold_count() == 3);
  CHECK(w.fair.remaining_time_to_live().value() > 50s);
  CHECK(w.line() == names{w.field(who)});
  for (int i = 0; i < 2; ++i) w.fair.unlock();
  CHECK(w.fair.hold_count() == 1);
  CHECK(w.fair.is_held_by_current_thread());
  CHECK(waiting.wait_for(0s) == std::future_status::timeout);
  w.fair.unlock();
  lease held = value_of(std::move(waiting));
  CHECK(w.fair.is_held_by(who));
  CHECK(held.release() == release_result::released);
  CHECK_FALSE(w.fair.is_locked());
}

TEST_CASE("fair lock: mixed with Redisson's clients the order of arrival is kept", "[server][fair]") {
  fair_world w;
  redisson_fair java_a(common_server(), w.name, "java:1"), java_b(common_server(), w.name, "java:2");
  lease held = w.fair.acquire();
  auto const a = owner::make(), b = owner::make();
  CHECK_FALSE(java_a.acquire());
  java_a.subscribe();
  auto first = w.fair.async_acquire({.owner = a}, asio::use_future);
  REQUIRE(w.listening(a));
  CHECK_FALSE(java_b.acquire());
  java_b.subscribe();
  auto second = w.fair.async_acquire({.owner = b}, asio::use_future);
  REQUIRE(w.listening(b));
  CHECK(w.line() == names{"java:1", w.field(a), "java:2", w.field(b)});

  held.release();
  REQUIRE(java_a.hear(patience));
  CHECK_FALSE(java_b.acquire());
  CHECK(java_a.acquire());
  CHECK_FALSE(java_b.acquire());
  CHECK(java_a.unlock() == 1);
  held = value_of(std::move(first));
  CHECK_FALSE(java_b.acquire());
  held.release();
  REQUIRE(java_b.hear(patience));
  CHECK(java_b.acquire());
  CHECK(java_b.unlock() == 1);
  value_of(std::move(second)).release();
  CHECK(w.nothing_left());
}

TEST_CASE("fair lock: the watchdog keeps it, a lease ends it, and a loss is told", "[server][fair]") {
  event_log log;
  auto settings = quick_config(log);
  settings.lock_watchdog_timeout = 2s * slowness;
  client own(common_server().uri(), settings);
  fair_world w;
  auto const lock = own.get_fair_lock(w.name);
  stopwatch since;
  lease held = lock.acquire();
  REQUIRE(wait_until([&] { return own.snapshot().renewals >= 4; }));
  CHECK(since.passed() > settings.lock_watchdog_timeout);
  CHECK(held.held());
  CHECK(held.extend(20s));
  CHECK(w.admin.integer("PTTL", w.name) > 10'000);
  CHECK(held.release() == release_result::released);

  lease lost = lock.acquire();
  w.admin.ok("DEL", w.name);
  CHECK(log.wait_for(event_type::lost, w.name));
  CHECK(wait_until([&] { return lost.lost().stop_requested(); }));
  CHECK(lost.release() == release_result::expired);

  lease brief = lock.acquire({.lease = brief_lease});
  CHECK(log.wait_for(event_type::lost, w.name, 2));
  CHECK_FALSE(brief.held());
}

TEST_CASE("fair lock: force_unlock removes any holder and tells the first waiter", "[server][fair]") {
  fair_world w;
  CHECK_FALSE(w.fair.force_unlock());
  redisson_fair peer(common_server(), w.name, "peer:1");
  REQUIRE(peer.acquire());
  auto const who = owner::make();
  auto waiting = w.fair.async_acquire({.owner = who}, asio::use_future);
  REQUIRE(w.listening(who));
  CHECK(w.fair.force_unlock());
  value_of(std::move(waiting)).release();
  CHECK(w.nothing_left());
}

TEST_CASE("fair lock: the questions tell who holds it, how often and for how long", "[server][fair]") {
  fair_world w;
  CHECK_FALSE(w.fair.is_locked());
  CHECK(w.fair.remaining_time_to_live() == std::nullopt);
  w.fair.lock();
  w.fair.lock();
  CHECK(w.fair.is_locked());
  CHECK(w.fair.hold_count() == 2);
  CHECK(w.fair.is_held_by(owner::this_thread()));
  CHECK_FALSE(w.fair.is_held_by(owner::make()));
  CHECK(w.fair.hold_count(owner::make()) == 0);
  CHECK(w.fair.remaining_time_to_live().value() > 20s);
  CHECK(w.fair.name() == w.name);
  CHECK(w.fair == w.own.get_fair_lock(w.name));
  CHECK(w.fair != w.own.get_lock(w.name));
  w.fair.unlock();
  w.fair.unlock();
  CHECK(error_of([&] { w.fair.unlock(); }) == errc::not_owner);
  CHECK(error_of([&] { return w.own.get_fair_lock(""); }) == errc::bad_argument);
}

TEST_CASE("fair lock: a user with the rights that the README names is served", "[server][fair]") {
  private_world w;
  auto words = rights_of("get_fair_lock", "name");
  words.insert(words.begin(), {"ACL", "SETUSER", "till", "reset", "resetchannels", "on", ">s3cret"});
  w.admin.send(words);
  REQUIRE(w.admin.receive().text == "OK");
  auto settings = steady_config(w.log);
  settings.username = "till";
  settings.password = "s3cret";
  client own(w.server.uri(), settings);
  auto const lock = own.get_fair_lock("name");
  // One that is long dead, one that leaves, one that is served.
  w.admin.ok("RPUSH", "redisson_lock_queue:{name}", "dead:1");
  w.admin.ok("ZADD", "redisson_lock_timeout:{name}", 1, "dead:1");
  lease held = lock.acquire();
  CHECK_FALSE(value_of(lock.async_try_lock(owner::make(), brief_wait, asio::use_future)));
  auto waiter = lock.async_acquire(asio::use_future);
  REQUIRE(w.log.wait_for(event_type::waiting, "name", 2));
  CHECK(held.release() == release_result::released);
  lease next = value_of(std::move(waiter));
  CHECK(next.extend(50s));
  CHECK(lock.hold_count(next.owner()) == 1);
  CHECK(lock.force_unlock());
  CHECK(wait_until([&] { return w.admin.integer("DBSIZE") == 0; }));
  w.log.catch_up(w.own);
  CHECK(w.log.refusals() == 0);
}

// How soon a waiter of the fair lock looks again, by his place in the line: the script, on a real server.

namespace {

constexpr int far_behind = 40;

struct line_of_waiters {
  redis_server server;
  raw_redis admin = server.admin();

  // What this waiter is answered, who is ready to wait for a minute.
  detail::reply look(std::string const& who) {
    std::vector<std::string> const words{
        "EVAL",   std::string(detail::fair_acquire().text()), "3", "k", "q", "t", "c", who, "1", "30000", "60000", "1",
        "publish"};
    admin.send(words);
    auto const said = admin.receive();
    INFO(said.text);
    REQUIRE(said.elements.size() == 1);
    return said.elements[0];
  }
  void all_look() {
    for (int i = 0; i < far_behind; ++i) {
      auto const said = look(name_of(i));
      INFO(name_of(i) << " " << said.text);
      CHECK(said.integer > 0);
    }
  }
  static std::string name_of(int place) { return "w:" + std::to_string(place); }
  void hold(int milliseconds) {
    admin.ok("HSET", "k", "holder", "1");
    admin.ok("PEXPIRE", "k", milliseconds);
  }
};

}  // namespace

TEST_CASE("fair lock: who stands first looks often, also when a later end has put the scores in another order",
          "[server][fair]") {
  line_of_waiters w;
  w.hold(1'000);
  w.all_look();
  w.hold(3'600'000);
  for (int times = 0; times < 2; ++times) CHECK(w.look(w.name_of(0)).integer <= 500);
  w.all_look();
  CHECK(w.look(w.name_of(0)).integer <= 500);
  CHECK(w.look(w.name_of(far_behind - 1)).integer >= 125 * (far_behind - 1));
}

TEST_CASE("fair lock: while it is free also those far from the head look soon", "[server][fair]") {
  line_of_waiters w;
  w.hold(60'000);
  w.all_look();
  w.admin.ok("DEL", "k");  // and those who stand first have died
  // Who was the first to tell them comes when they are given up.
  CHECK(w.look(w.name_of(far_behind - 1)).integer == 700);
  auto const soon = w.look(w.name_of(far_behind - 1)).integer;
  CHECK(soon <= 2'000);
  CHECK(soon > 1'000);  // but not as often as those near the head
}

TEST_CASE("fair lock: who may not read the scores of others waits in any place", "[server][fair]") {
  line_of_waiters w;
  w.hold(60'000);
  w.admin.ok("ACL", "SETUSER", "default", "-zrange");
  w.all_look();
  w.all_look();
}
