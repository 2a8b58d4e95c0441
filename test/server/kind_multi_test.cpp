// The multi lock: all of its members or none.
#include <latchkey/latchkey.hpp>
#include <support/catch.hpp>
#include <support/errors.hpp>
#include <support/redis_server.hpp>
#include <support/worlds.hpp>

#include <boost/asio/use_future.hpp>

#include <atomic>
#include <future>
#include <map>
#include <thread>
#include <vector>

using namespace latchkey;
using namespace latchkey::test;

namespace {

using counts = std::map<std::string, int>;

}  // namespace

TEST_CASE("multi lock: it holds every member and gives every member back", "[server][multi]") {
  trio w;
  w.all.lock();
  CHECK(w.held_by(owner::this_thread()));
  CHECK(w.all.is_held_by_current_thread());
  w.all.unlock();
  CHECK(w.keys() == 0);
  CHECK(w.all.try_lock());
  CHECK(w.all.try_lock(1s));  // once more
  CHECK(w.admin.hash(w.names[2]) == fields{{w.field(owner::this_thread()), "2"}});
  CHECK(w.all.hold_count() == 2);
  w.all.unlock();
  CHECK(w.held_by(owner::this_thread()));
  w.all.unlock();
  CHECK(w.keys() == 0);
  CHECK(error_of([&] { w.all.unlock(); }) == errc::not_owner);
}

TEST_CASE("multi lock: a lease is given to every member", "[server][multi]") {
  trio w;
  REQUIRE(w.all.try_lock(1s, 7s));
  for (auto const& name : w.names) {
    auto const ttl = w.admin.integer("PTTL", name);
    CHECK(ttl > 1'000);
    CHECK(ttl <= 7'000);
  }
  w.all.unlock();
}

TEST_CASE("multi lock: one busy member and none is taken, not for a moment", "[server][multi]") {
  redis_server server({.tcp = true});
  client own(server.uri(), steady_config()), other(server.uri(), steady_config());
  auto admin = server.admin();
  auto const all = own.get_multi_lock({own.get_lock("a"), own.get_lock("b"), own.get_lock("c")});
  other.get_lock("b").lock();
  all.is_locked();  // connected
  admin.ok("CONFIG", "SET", "notify-keyspace-events", "KA");
  auto watcher = server.admin();
  watcher.send({"PSUBSCRIBE", "__keyspace@0__:*"});
  watcher.receive();
  CHECK_FALSE(all.try_lock());
  CHECK_FALSE(all.try_lock(brief_wait));
  admin.ok("SET", "end", "1");
  CHECK(watcher.receive().elements[2].text == "__keyspace@0__:end");  // nothing was written before
  other.get_lock("b").unlock();
}

TEST_CASE("multi lock: it waits for the busy member while it holds nothing", "[server][multi]") {
  trio w;
  auto const theirs = w.other.get_lock(w.names[1]);
  theirs.lock();
  auto waiter = std::async(std::launch::async, [&] {
    bool const held = w.all.try_lock(patience);
    bool const right = held && w.held_by(owner::this_thread());
    if (held) w.all.unlock();
    return right;
  });
  REQUIRE(w.log.wait_for(event_type::waiting, w.names[1]));
  CHECK(w.keys() == 1);
  CHECK(w.other.get_lock(w.names[0]).try_lock());  // whoever wants only that one gets it
  w.other.get_lock(w.names[0]).unlock();
  theirs.unlock();
  CHECK(waiter.get());
  CHECK(w.keys() == 0);
}

TEST_CASE("multi lock: its cost in commands", "[server][multi]") {
  redis_server server({.tcp = true});
  client own(server.uri(), steady_config()), other(server.uri(), steady_config());
  std::vector<distributed_lock> members;
  for (char const* name : {"a", "b", "c", "d", "e"}) members.push_back(own.get_lock(name));
  auto const all = own.get_multi_lock(members);
  all.lock();  // connections and scripts
  all.unlock();
  CHECK_FALSE(other.get_lock("c").is_locked());
  auto const theirs = other.get_lock("c");
  theirs.lock();
  theirs.unlock();
  command_counter counter(server);
  counter.take();
  all.lock();
  CHECK(counter.take() == counts{{"EVALSHA", 1}});
  all.unlock();
  CHECK(counter.take() == counts{{"EVALSHA", 1}});

  theirs.lock();
  counter.take();
  CHECK_FALSE(all.try_lock());
  CHECK(counter.take() == counts{{"EVALSHA", 1}});
  auto waiter = std::async(std::launch::async, [&] {
    all.lock();
    all.unlock();
  });
  counts contended;
  auto const scripts = [&] {
    for (auto const& [name, count] : counter.take()) contended[name] += count;
    return contended["EVALSHA"] + contended["EVAL"];
  };
  // All at once; the busy one, by itself and once more when it is heard. What this client has not used yet goes whole.
  REQUIRE(wait_until([&] { return scripts() == 3; }));  // on the server: the release must not overtake the last
  theirs.unlock();
  waiter.get();
  // Theirs; what the message brings; the other four; the release.
  CHECK(scripts() == 3 + 4);
  CHECK(contended["SUBSCRIBE"] == 1);
}

TEST_CASE("multi lock: members of two servers are taken in order and given back", "[server][multi]") {
  redis_server first, second;
  client a(first.uri(), steady_config()), b(second.uri(), steady_config());
  auto const all = a.get_multi_lock({a.get_lock("x"), b.get_lock("y"), a.get_lock("z")});
  auto held = all.acquire();
  REQUIRE(held.held());
  CHECK(first.admin().hash("x") == fields{{a.id() + ":" + to_string(held.owner()), "1"}});
  CHECK(second.admin().hash("y") == fields{{b.id() + ":" + to_string(held.owner()), "1"}});
  CHECK(held.release() == release_result::released);
  CHECK(first.admin().integer("EXISTS", "x", "z") == 0);
  CHECK(second.admin().integer("EXISTS", "y") == 0);

  b.get_lock("y").lock();
  CHECK_FALSE(all.acquire({.wait = 300ms * slowness}));
  CHECK(wait_until([&] { return first.admin().integer("EXISTS", "x", "z") == 0; }));
  b.get_lock("y").unlock();
}

TEST_CASE("multi lock: a member that is lost before the last one is granted is asked for again", "[server][multi]") {
  redis_server first, second;
  client a(first.uri(), steady_config()), b(second.uri(), steady_config());
  auto const all = a.get_multi_lock({a.get_lock("x"), b.get_lock("y")});
  all.lock();
  all.unlock();
  second.pause();
  auto waiting = all.async_acquire({.wait = 20s}, boost::asio::use_future);
  REQUIRE(wait_until([&] { return first.admin().integer("EXISTS", "x") == 1; }));
  a.get_lock("x").force_unlock();
  second.resume();
  auto held = value_of(std::move(waiting));
  REQUIRE(held.held());
  CHECK(first.admin().hash("x") == fields{{a.id() + ":" + to_string(held.owner()), "1"}});
  CHECK(second.admin().hash("y") == fields{{b.id() + ":" + to_string(held.owner()), "1"}});
  CHECK(held.release() == release_result::released);
  CHECK(first.admin().integer("EXISTS", "x") + second.admin().integer("EXISTS", "y") == 0);
}

TEST_CASE("multi lock: callers with opposite orders neither deadlock nor block each other", "[server][multi]") {
  redis_server first, second;
  client a(first.uri(), steady_config()), b(second.uri(), steady_config());
  client c(first.uri(), steady_config()), d(second.uri(), steady_config());
  auto const one_server = GENERATE(false, true);
  constexpr int turns = 150;
  int inside = 0, most = 0, total = 0;
  std::mutex guard;
  auto const work = [&](distributed_lock const& all) {
    for (int i = 0; i < turns; ++i) {
      all.lock();
      {
        std::scoped_lock const lock(guard);
        most = std::max(most, ++inside);
        ++total;
      }
      {
        std::scoped_lock const lock(guard);
        --inside;
      }
      all.unlock();
    }
  };
  auto const forth = one_server ? a.get_multi_lock({a.get_lock("m"), a.get_lock("n")})
                                : a.get_multi_lock({a.get_lock("m"), b.get_lock("n")});
  auto const back = one_server ? c.get_multi_lock({c.get_lock("n"), c.get_lock("m")})
                               : c.get_multi_lock({d.get_lock("n"), c.get_lock("m")});
  stopwatch since;
  auto other = std::async(std::launch::async, [&] { work(back); });
  work(forth);
  other.get();
  CHECK(total == 2 * turns);
  CHECK(most == 1);
  CHECK(since.passed() < 30s * slowness);
}

TEST_CASE("multi lock: loss of one member is loss of all, told once", "[server][multi]") {
  event_log log;
  client own(common_server().uri(), quick_config(log));
  auto admin = common_server().admin();
  std::vector<std::string> const names{new_name(), new_name(), new_name()};
  auto const all = own.get_multi_lock({own.get_lock(names[0]), own.get_lock(names[1]), own.get_lock(names[2])});
  auto held = all.acquire();
  REQUIRE(held.held());
  std::atomic<int> told{0};
  std::promise<error_code> why;
  held.on_lost([&](error_code code) {
    if (told++ == 0) why.set_value(code);
  });
  admin.ok("DEL", names[1]);
  CHECK(value_of(why.get_future()) == errc::lease_lost);
  CHECK_FALSE(held.held());
  CHECK(held.remaining() == 0ms);
  CHECK(held.lost().stop_requested());
  CHECK(static_cast<bool>(held));
  CHECK(wait_until([&] { return admin.integer("EXISTS", names[0], names[1], names[2]) == 0; }));
  CHECK_FALSE(held.extend(1s));
  CHECK(held.release() == release_result::expired);
  CHECK(told == 1);

  all.lock();
  admin.ok("DEL", names[2]);
  REQUIRE(wait_until([&] { return admin.integer("EXISTS", names[0], names[1]) == 0; }));
  CHECK(error_of([&] { all.unlock(); }) == errc::lease_lost);
  CHECK(error_of([&] { all.unlock(); }) == errc::not_owner);
  CHECK(own.snapshot().held == 0);
}

TEST_CASE("multi lock: a lease that runs out is lost as a whole", "[server][multi]") {
  trio w;
  auto held = w.all.acquire({.lease = brief_lease});
  REQUIRE(held);
  CHECK(wait_until([&] { return held.lost().stop_requested(); }));
  CHECK_FALSE(held.held());
  CHECK(held.release() == release_result::expired);
}

TEST_CASE("multi lock: a lease lasts as long as the member that ends first", "[server][multi]") {
  event_log log;
  auto settings = steady_config();
  settings.lock_watchdog_timeout = 20s;
  client shorter(common_server().uri(), settings);
  common_world w;
  auto const all = w.own.get_multi_lock({w.lock, shorter.get_lock(new_name())});
  auto held = all.acquire();
  CHECK(held.remaining() <= 20s);
  CHECK(held.remaining() > 5s);
  CHECK(held.fencing_token() == std::nullopt);
  CHECK(held.extend(60s));
  CHECK(held.remaining() > 30s);
  CHECK(w.admin.integer("PTTL", w.name) > 30'000);
  CHECK(held.extend(9s));
  CHECK(held.remaining() <= 9s);
}

// What a lease shares with its hold is gone with the lease, also for a client that is just telling all of its losses.
TEST_CASE("multi lock: leases end on one thread while the client closes on another", "[server][multi]") {
  for (int i = 0; i < 40; ++i) {
    client own(common_server().uri(), steady_config());
    auto const all = own.get_multi_lock({own.get_lock(new_name()), own.get_lock(new_name())});
    std::vector<lease> held;
    auto const me = owner::make();
    for (int j = 0; j < 16; ++j) held.push_back(all.acquire({.owner = me}));
    std::atomic<bool> begun{false};
    auto const ending = std::async(std::launch::async, [&] {
      begun = true;
      while (!held.empty()) {
        if (held.size() % 2 == 0) static_cast<void>(held.back().release());
        held.pop_back();
      }
    });
    while (!begun) std::this_thread::yield();
    own.close();
    ending.wait();
  }
}

TEST_CASE("multi lock: callers of one client ask for no member while they wait for another", "[server][multi]") {
  constexpr int callers = 3, turns = 60;
  redis_server server({.tcp = true});
  client own(server.uri(), steady_config());
  auto admin = server.admin();
  auto const all = own.get_multi_lock({own.get_lock("a"), own.get_lock("b")});
  all.lock();
  all.unlock();
  auto const before = admin.script_calls();
  std::vector<std::thread> threads;
  for (int i = 0; i < callers; ++i)
    threads.emplace_back([&] {
      for (int turn = 0; turn < turns; ++turn) {
        all.lock();
        own.get_lock("c").is_locked();  // as long as a question takes
        all.unlock();
      }
    });
  for (auto& thread : threads) thread.join();
  // The first member, then the other, and one release of both; six when each asked for what another was about to have.
  CHECK(admin.script_calls() - before <= 4 * callers * turns);
  CHECK(admin.integer("EXISTS", "a", "b") == 0);
}

TEST_CASE("multi lock: release tells the worst that a member tells", "[server][multi]") {
  trio w;
  auto const me = owner::make();
  auto outer = w.members[0].acquire({.owner = me});
  auto held = w.all.acquire({.owner = me});
  CHECK(w.admin.hash(w.names[0]) == fields{{w.field(me), "2"}});
  CHECK(held.release() == release_result::still_held);
  CHECK(w.keys() == 1);
  CHECK(outer.release() == release_result::released);

  auto gone = w.all.acquire();
  w.admin.ok("DEL", w.names[1]);
  CHECK(gone.release() == release_result::expired);
  CHECK(w.keys() == 0);
  CHECK_FALSE(gone);
}

TEST_CASE("multi lock: unlock tries every member before it reports an error", "[server][multi]") {
  trio w;
  w.all.lock();
  w.admin.ok("DEL", w.names[0]);
  w.admin.ok("SET", w.names[0], "no lock");
  CHECK(error_of([&] { w.all.unlock(); }) == errc::wrong_type);
  CHECK(w.admin.integer("EXISTS", w.names[1], w.names[2]) == 0);
  w.admin.ok("DEL", w.names[0]);
}

TEST_CASE("multi lock: an error of a member is reported and nothing stays", "[server][multi]") {
  trio w;
  w.admin.ok("SET", w.names[2], "no lock");
  auto const failed = thrown_by([&] { w.all.lock(); });
  CHECK(failed.code() == errc::wrong_type);
  CHECK(failed.server_text().find("WRONGTYPE") != std::string::npos);
  CHECK(w.admin.integer("EXISTS", w.names[0], w.names[1]) == 0);
  auto const mixed = w.own.get_multi_lock({w.members[0], w.other.get_lock(w.names[2])});
  CHECK(error_of([&] { mixed.lock(); }) == errc::wrong_type);
  CHECK(wait_until([&] { return w.admin.integer("EXISTS", w.names[0]) == 0; }));
  w.admin.ok("DEL", w.names[2]);
}
