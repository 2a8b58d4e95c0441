// Slots of a cluster that move while a client works. The numbers are those of docs/topology-cases.md.
#include <support/errors.hpp>
#include <topologies/cluster_world.hpp>

#include <boost/asio/use_future.hpp>

using namespace latchkey;
using namespace latchkey::test;

TEST_CASE("case t16, t8: a slot moves while a lock in it is held", "[topologies][cluster][case-t8][case-t16]") {
  cluster_world w;
  auto const user_has = [&](auto const&... rights) {
    for (std::size_t i = 0; i < 6; ++i) w.servers.node(i).admin().ok("ACL", "SETUSER", "app", rights...);
  };
  user_has("on", ">secret", "~*", "&*", "+@all");
  client own(w.servers.uri("app:secret@"), cluster_config(w.log));
  auto const name = w.servers.name_on(0);
  auto held = own.get_lock(name).acquire({.wait = patience});
  REQUIRE(held.held());
  user_has("-cluster");  // nobody is to hear of it before MOVED says so
  w.servers.begin_move(name, 0, 1);
  w.servers.move(name, 0, 1);
  w.servers.end_move(name, 0, 1);
  CHECK(w.has(1, name));
  for (int i = 0; i < 2; ++i) CHECK(held.extend(20s));
  CHECK(own.snapshot().redirected == 1);
  user_has("+cluster");
  CHECK(held.release() == release_result::released);
  CHECK_FALSE(w.has(1, name));
  CHECK(own.get_lock(name).acquire({.wait = patience}).held());
  CHECK(own.snapshot().redirected == 1);
}

TEST_CASE("case t17: a slot moves while a lock in it is waited for", "[topologies][cluster][case-t17]") {
  cluster_world w;
  client other(w.servers.uri(), cluster_config(w.log));
  auto const name = w.servers.name_on(0);
  auto held = w.own->get_lock(name).acquire({.wait = patience, .lease = 60s});
  REQUIRE(held.held());
  waiter waits(other, name);
  CHECK(w.is_listened_to(0));
  w.servers.begin_move(name, 0, 1);
  w.servers.move(name, 0, 1);
  w.servers.end_move(name, 0, 1);
  CHECK(w.is_listened_to(1));
  CHECK(held.release() == release_result::released);
  auto const released = std::chrono::steady_clock::now();
  CHECK(waits.had.get() - released < bound(50ms, 1s));  // it has not looked by itself
}

TEST_CASE("case t12, t14: a lock in a slot that is half moved", "[topologies][cluster][case-t12][case-t14]") {
  cluster_world w;
  auto const name = w.servers.name_on(0);
  auto held = w.own->get_lock(name).acquire({.wait = patience});
  auto stays = w.own->get_lock("{" + name + "}2").acquire({.wait = patience});
  REQUIRE((held.held() && stays.held()));
  w.servers.begin_move(name, 0, 1);
  CHECK(held.extend(20s));  // its key is still at the source
  stopwatch at_source;
  CHECK(stays.release() == release_result::released);
  CHECK(at_source.passed() < bound(50ms, 1s));
  CHECK_FALSE(w.has(0, stays.name()));
  w.servers.move(name, 0, 1);
  stopwatch time;
  CHECK(held.extend(20s));
  CHECK(w.own->get_lock(name).is_locked());
  CHECK(held.release() == release_result::released);
  CHECK(time.passed() < bound(50ms, 1s));
  auto again = w.own->get_lock(name).acquire({.wait = patience});
  REQUIRE(again.held());
  CHECK(w.has(0, name) == false);
  w.servers.end_move(name, 0, 1);
  CHECK(w.has(1, name));
  CHECK(again.release() == release_result::released);
}

TEST_CASE("case t19: a slot goes back and forth a hundred times under 8 clients", "[topologies][cluster][case-t19]") {
  cluster_world w;
  constexpr int times = 34;  // of three kinds
  for (getter const get : {&client::get_lock, &client::get_spin_lock, &client::get_plain_lock}) {
    auto const name = w.servers.name_on(0);
    crowd all(w, get, name);
    for (int i = 0; i < times; ++i) {
      all.go_on();
      std::size_t const from = i % 2 == 0 ? 0 : 1, to = 1 - from;
      w.servers.begin_move(name, from, to);
      w.servers.move_all(name, from, to);
      w.servers.end_move(name, from, to);
    }
    all.end();
  }
  CHECK(w.log.count_after(*w.own, event_type::lost) == 0);
}

TEST_CASE("case t13: locks of one tag at both ends of the way are held and passed on",
          "[topologies][cluster][case-t13]") {
  cluster_world w;
  auto const tag = "{" + w.servers.name_on(0) + "}";
  auto here = w.own->get_lock(tag + "here").acquire({.wait = patience});
  w.servers.begin_move(tag, 0, 1);
  auto there = w.own->get_lock(tag + "there").acquire({.wait = patience});
  REQUIRE((here.held() && there.held()));
  for (int i = 0; i < 100; ++i) {
    auto first = here.async_extend(10s, boost::asio::use_future);
    auto second = there.async_extend(10s, boost::asio::use_future);
    CHECK(first.get());
    CHECK(second.get());
  }
  CHECK(w.servers.node(0).admin().integer("EXISTS", tag + "here") == 1);
  w.servers.move_all(tag, 0, 1);
  w.servers.end_move(tag, 0, 1);
  CHECK(here.release() == release_result::released);
  CHECK(there.release() == release_result::released);
  CHECK(w.log.count_after(*w.own, event_type::lost) == 0);
}

TEST_CASE("case t15: a fair lock stands while its keys are on their way, and no longer",
          "[topologies][cluster][case-t15]") {
  cluster_world w;
  client other(w.servers.uri(), cluster_config(w.log));
  auto const name = w.servers.name_on(0);
  auto held = w.own->get_fair_lock(name).acquire({.wait = patience});
  REQUIRE(held.held());
  waiter waits(other, name, &client::get_fair_lock);
  CHECK(
      wait_until([&] { return w.servers.node(0).admin().integer("LLEN", "redisson_lock_queue:{" + name + "}") == 1; }));
  w.servers.begin_move(name, 0, 1);
  w.servers.move(name, 0, 1);  // the line is still at the source
  auto released = std::async(std::launch::async, [&] { return held.release(); });
  stopwatch meanwhile;
  auto const beside = w.servers.name_on(0);
  for (int i = 0; i < 100; ++i) CHECK(w.own->get_lock(beside).acquire({.wait = patience}).held());
  CHECK(meanwhile.passed() < bound(500ms, 5s));  // nothing else of the node waits
  CHECK(released.wait_for(0s) == std::future_status::timeout);
  w.servers.move_all(name, 0, 1);
  w.servers.end_move(name, 0, 1);
  auto const moved = std::chrono::steady_clock::now();
  CHECK(released.get() == release_result::released);
  CHECK(waits.had.get() - moved < 1'100ms * slowness);
}

TEST_CASE("case t18: who waits at the source hears that the lock was released at the target",
          "[topologies][cluster][case-t18]") {
  cluster_world w;
  client other(w.servers.uri(), cluster_config(w.log));
  auto const name = w.servers.name_on(0);
  auto held = w.own->get_lock(name).acquire({.wait = patience});
  REQUIRE(held.held());
  waiter waits(other, name);
  CHECK(w.is_listened_to(0));
  w.servers.begin_move(name, 0, 1);
  w.servers.move(name, 0, 1);
  CHECK(held.release() == release_result::released);
  auto const released = std::chrono::steady_clock::now();
  CHECK(waits.had.get() - released < bound(300ms, 1s));  // it has not looked by itself
  w.servers.move_all(name, 0, 1);
  w.servers.end_move(name, 0, 1);
}

TEST_CASE("case t37: who may not listen to a channel looks by itself", "[topologies][cluster][case-t37]") {
  cluster_world w;
  char const* const unlistened = redis_major() < 7 ? "-subscribe" : "-ssubscribe";
  for (std::size_t i = 0; i < 6; ++i) w.servers.node(i).admin().ok("ACL", "SETUSER", "default", unlistened);
  event_log log;
  client other(w.servers.uri(), cluster_config(log));
  auto const name = w.servers.name_on(0);
  auto held = w.own->get_lock(name).acquire({.wait = patience});
  REQUIRE(held.held());
  waiter waits(other, name);
  CHECK(log.wait_for(event_type::subscribe_refused, 1));
  CHECK(held.release() == release_result::released);
  auto const released = std::chrono::steady_clock::now();
  CHECK(waits.had.get() - released < 1'500ms * slowness);
}
