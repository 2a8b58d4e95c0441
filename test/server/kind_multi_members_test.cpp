// The multi lock: lists of members, good and bad, and what may be asked of it.
#include <latchkey/latchkey.hpp>
#include <support/catch.hpp>
#include <support/command_counter.hpp>
#include <support/errors.hpp>
#include <support/trio.hpp>

#include <boost/asio/use_future.hpp>

#include <future>
#include <map>
#include <vector>

using namespace latchkey;
using namespace latchkey::test;
using fields = std::map<std::string, std::string>;

TEST_CASE("multi lock: the questions", "[server][multi]") {
  trio w;
  auto const me = owner::make();
  CHECK_FALSE(w.all.is_locked());
  CHECK(w.all.hold_count(me) == 0);
  auto held = w.all.acquire({.owner = me});
  auto more = w.members[1].acquire({.owner = me});
  CHECK(w.all.is_locked());
  CHECK(w.all.is_held_by(me));
  CHECK(w.all.hold_count(me) == 1);
  CHECK_FALSE(w.all.is_held_by_current_thread());
  CHECK(held.release() == release_result::still_held);
  CHECK_FALSE(w.all.is_locked());  // one of them is
  CHECK_FALSE(w.all.is_held_by(me));
  CHECK(error_of([&] { w.all.force_unlock(); }) == errc::bad_argument);
  CHECK(error_of([&] { static_cast<void>(w.all.remaining_time_to_live()); }) == errc::bad_argument);
  CHECK(w.all.name() == w.names[0] + "," + w.names[1] + "," + w.names[2]);
}

TEST_CASE("multi lock: equal handles are one lock", "[server][multi]") {
  trio w;
  auto const same = w.own.get_multi_lock(w.members);
  CHECK(same == w.all);
  CHECK(w.own.get_multi_lock({w.members[1], w.members[0], w.members[2]}) != w.all);
  CHECK(w.other.get_multi_lock(w.members) != w.all);
  CHECK(w.own.get_red_lock(w.members) != w.all);
  w.own.get_multi_lock(w.members).lock();
  same.unlock();
  CHECK(w.keys() == 0);
}

TEST_CASE("multi lock: members of different kinds", "[server][multi]") {
  common_world w;
  auto const names = std::vector{new_name(), new_name(), new_name(), new_name(), new_name()};
  auto const rw = w.own.get_read_write_lock(names[4]);
  auto const all =
      w.own.get_multi_lock({w.lock, w.own.get_plain_lock(names[0]), w.own.get_spin_lock(names[1]),
                            w.own.get_fenced_lock(names[2]), w.own.get_non_reentrant_lock(names[3]), rw.write_lock()});
  client other(common_server().uri(), steady_config());
  for (auto const& busy :
       {other.get_plain_lock(names[0]), other.get_spin_lock(names[1]), other.get_fenced_lock(names[2]),
        other.get_non_reentrant_lock(names[3]), other.get_read_write_lock(names[4]).read_lock()}) {
    busy.lock();
    CHECK_FALSE(all.try_lock());
    auto waiter = all.async_acquire(asio::use_future);
    busy.unlock();
    auto held = value_of(std::move(waiter));
    REQUIRE(held.held());
    CHECK(all.is_held_by(held.owner()));
    CHECK(held.fencing_token() == std::nullopt);
    CHECK(held.release() == release_result::released);
    CHECK(w.admin.integer("EXISTS", w.name, names[0], names[1], names[2], names[3], names[4]) == 0);
  }
  all.lock();
  CHECK(error_of([&] { static_cast<void>(all.try_lock()); }) == errc::already_held);  // some are not reentrant
  CHECK(all.hold_count() == 1);
  CHECK(error_of([&] { static_cast<void>(all.get_token()); }) == errc::bad_argument);
  all.unlock();
  CHECK_FALSE(all.is_locked());
}

TEST_CASE("multi lock: relatives of the reentrant lock leave in one script call", "[server][multi]") {
  redis_server server({.tcp = true});
  client own(server.uri(), steady_config());
  auto const all = own.get_multi_lock(
      {own.get_lock("a"), own.get_spin_lock("b"), own.get_non_reentrant_lock("c"), own.get_lock("d")});
  all.lock();
  all.unlock();
  command_counter counter(server);
  counter.take();
  all.lock();
  CHECK(counter.take() == std::map<std::string, int>{{"EVALSHA", 1}});
  all.unlock();
}

TEST_CASE("A13: multi lock: bad lists", "[server][multi]") {
  trio w;
  CHECK(error_of([&] { w.own.get_multi_lock({}); }) == errc::bad_argument);
  auto gone = w.members[0];
  auto const kept = std::move(gone);
  CHECK(error_of([&] { w.own.get_multi_lock({kept, gone}); }) == errc::bad_argument);
  std::vector<distributed_lock> many(257, w.members[0]);
  CHECK(error_of([&] { w.own.get_multi_lock(many); }) == errc::bad_argument);
  CHECK(error_of([&] {
          w.own.get_multi_lock({w.own.get_multi_lock({many.begin(), many.end() - 1}), kept});
        }) == errc::bad_argument);
  CHECK(error_of([&] { w.all.lock(0ms); }) == errc::bad_argument);
  CHECK(error_of([&] { static_cast<void>(w.all.acquire({.lease = 1s, .max_hold = 1s})); }) == errc::bad_argument);
  CHECK(w.keys() == 0);
}

TEST_CASE("A13: multi lock: the same lock twice is entered twice", "[server][multi]") {
  trio w;
  auto const twice = w.own.get_multi_lock({w.members[0], w.members[1], w.members[0]});
  twice.lock();
  CHECK(w.admin.hash(w.names[0]) == fields{{w.field(owner::this_thread()), "2"}});
  CHECK(w.admin.hash(w.names[1]) == fields{{w.field(owner::this_thread()), "1"}});
  twice.unlock();
  CHECK(w.keys() == 0);
}

TEST_CASE("A13: multi lock: more members than one script call takes", "[server][multi]") {
  common_world w;
  std::vector<distributed_lock> members;
  for (int i = 0; i < 100; ++i) members.push_back(w.own.get_lock(w.name + std::to_string(i)));
  auto const all = w.own.get_multi_lock(members);
  all.lock();
  CHECK(all.is_held_by_current_thread());
  all.unlock();
  CHECK_FALSE(members[99].is_locked());
  client other(common_server().uri(), steady_config());
  other.get_lock(w.name + "77").lock();
  CHECK_FALSE(all.try_lock());
  CHECK(wait_until([&] { return !members[0].is_locked(); }));
  other.get_lock(w.name + "77").unlock();
}

TEST_CASE("multi lock: nested ones hold and give back everything", "[server][multi]") {
  trio w;
  auto const inner = w.own.get_multi_lock({w.members[0], w.members[1]});
  auto const red = w.own.get_red_lock({w.members[2]});
  auto const outer = w.own.get_multi_lock({inner, red});
  CHECK(outer.name() == w.all.name());
  auto held = outer.acquire();
  REQUIRE(held.held());
  CHECK(w.held_by(held.owner()));
  CHECK(outer.is_held_by(held.owner()));
  CHECK(held.extend(60s));
  CHECK(held.remaining() > 30s);
  CHECK_FALSE(w.other.get_lock(w.names[1]).try_lock());
  CHECK(held.release() == release_result::released);
  CHECK(w.keys() == 0);

  auto const theirs = w.other.get_lock(w.names[1]);
  theirs.lock();
  CHECK_FALSE(outer.try_lock(300ms * slowness));
  auto waiter = std::async(std::launch::async, [&] {
    outer.lock();
    outer.unlock();
  });
  REQUIRE(w.log.wait_for(event_type::waiting, w.names[1], 2));
  theirs.unlock();
  CHECK(waiter.wait_for(patience) == std::future_status::ready);
}

TEST_CASE("multi lock: loss in a nested one is loss of all", "[server][multi]") {
  client own(common_server().uri(), quick_config());
  auto admin = common_server().admin();
  std::vector<std::string> const names{new_name(), new_name(), new_name()};
  auto const inner = own.get_multi_lock({own.get_lock(names[0]), own.get_lock(names[1])});
  auto held = own.get_multi_lock({own.get_lock(names[2]), inner}).acquire();
  REQUIRE(held.held());
  admin.ok("DEL", names[0]);
  CHECK(wait_until([&] { return held.lost().stop_requested(); }));
  CHECK(wait_until([&] { return admin.integer("EXISTS", names[0], names[1], names[2]) == 0; }));
}
