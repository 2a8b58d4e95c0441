// What a client is: its identity, its life, where its handlers run, what can be seen of it.
#include <latchkey/latchkey.hpp>
#include <support/catch.hpp>
#include <support/errors.hpp>
#include <support/run_coro.hpp>
#include <support/worlds.hpp>

#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <future>
#include <numeric>
#include <optional>
#include <regex>
#include <sstream>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

using namespace latchkey;
using namespace latchkey::test;

static_assert(std::is_nothrow_move_constructible_v<client> && !std::is_copy_constructible_v<client>);

TEST_CASE("a client has an id of its own: a random UUID", "[server][contract]") {
  client a(common_server().uri());
  client b(common_server().uri());
  std::regex const uuid("[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}");
  CHECK(std::regex_match(a.id(), uuid));
  CHECK(a.id() != b.id());
  CHECK(a.new_owner() != b.new_owner());
}

TEST_CASE("a client does not connect before it is used, and copies its URI", "[server][contract]") {
  private_world w;
  CHECK(w.admin.clients() == 0);
  std::string uri = w.server.uri();
  client late(uri, steady_config());
  uri.assign(uri.size(), '?');
  CHECK(late.get_lock("other").try_lock());
  CHECK(w.admin.clients() > 0);
  CHECK(late.snapshot().connected);
  CHECK_FALSE(w.own.snapshot().connected);
}

TEST_CASE("client_name is what CLIENT LIST shows, and the database is selected", "[server][contract]") {
  private_world w;
  auto settings = steady_config();
  settings.client_name = "till-7";
  settings.database = 3;
  client named(w.server.uri(), settings);
  CHECK(named.get_lock("x").try_lock());
  CHECK(w.admin.clients(" name=till-7 ") > 0);
  CHECK(w.admin.integer("EXISTS", "x") == 0);
  w.admin.ok("SELECT", 3);
  CHECK(w.admin.integer("EXISTS", "x") == 1);
}

TEST_CASE("a client can be moved, and leases and handles go on with it", "[server][contract]") {
  client first(common_server().uri(), steady_config());
  auto const lock = first.get_lock(new_name());
  lease held = lock.acquire();
  client second = std::move(first);
  CHECK(held.held());
  CHECK(second.get_lock(lock.name()) == lock);
  CHECK(lock.is_locked());
  client third(common_server().uri(), steady_config());
  lease lost = third.get_lock(new_name()).acquire();
  third = std::move(second);
  CHECK_FALSE(lost.held());
  CHECK(held.release() == release_result::released);
}

TEST_CASE("close fails waiters, awaits the release of a lease, and a second one does nothing", "[server][contract]") {
  common_world w;
  lease held = w.lock.acquire();
  std::stop_callback const end(held.lost(), [&] { lease const gone = std::move(held); });
  auto waiter = std::async(std::launch::async, [&] { return error_of([&] { w.lock.lock(); }); });
  auto future = w.lock.async_lock(owner::make(), asio::use_future);
  REQUIRE(wait_until([&] { return w.own.snapshot().waiting == 2; }));
  w.own.close();
  CHECK(value_of(std::move(waiter)) == errc::closed);
  CHECK_THROWS_AS(future.get(), boost::system::system_error);
  CHECK(w.admin.integer("EXISTS", w.name) == 0);
  w.own.close();
}

TEST_CASE("several threads may close one client at once", "[server][contract]") {
  for (int i = 0; i < 100; ++i) {
    event_log log;
    client own(common_server().uri(), steady_config(log));
    own.get_lock(new_name()).lock();
    std::vector<std::thread> closers;
    for (int n = 0; n < 4; ++n) closers.emplace_back([&] { own.close(); });
    for (auto& one : closers) one.join();
    REQUIRE(log.count(event_type::callback_failed) == 0);
  }
}

TEST_CASE("after close every call says closed, and leases and handles may outlive the client", "[server][contract]") {
  lease held;
  std::optional<distributed_lock> lock;
  {
    client own(common_server().uri(), steady_config());
    lock = own.get_lock(new_name());
    held = lock->acquire();
  }
  CHECK_FALSE(held.held());
  CHECK(error_of([&] { lock->lock(); }) == errc::closed);
  CHECK(error_of([&] { return lock->try_lock(); }) == errc::closed);
  CHECK(error_of([&] { lock->unlock(); }) == errc::closed);
  CHECK(error_of([&] { return lock->is_locked(); }) == errc::closed);
  CHECK(error_of([&] { return lock->force_unlock(); }) == errc::closed);
  CHECK(error_of([&] { return lock->acquire(); }) == errc::closed);
  CHECK(error_of([&] { return held.extend(1s); }) == errc::closed);
  CHECK(error_of([&] { return held.release(); }) == errc::closed);
}

TEST_CASE("the destructor releases what is held and pending releases", "[server][contract]") {
  auto admin = common_server().admin();
  auto const name = new_name();
  {
    client own(common_server().uri(), steady_config());
    auto const lock = own.get_lock(name);
    { lease dropped = lock.acquire(); }
    lock.lock();
  }
  CHECK(admin.integer("EXISTS", name) == 0);
}

TEST_CASE("async_close completes when everything is given back", "[server][contract]") {
  common_world w;
  asio::io_context io;
  client own(io, common_server().uri(), steady_config());
  run_coro(io, [](client& c, std::string name) -> asio::awaitable<void> {
    auto const lock = c.get_lock(std::move(name));
    lease held = co_await lock.async_acquire();
    held.on_lost([&held] { lease const gone = std::move(held); });
    co_await c.async_close();
    CHECK_FALSE(held);
  }(own, w.name));
  CHECK(w.admin.integer("EXISTS", w.name) == 0);
}

TEST_CASE("on the caller's context run() returns after close and not before", "[server][contract]") {
  asio::io_context io;
  client own(io, common_server().uri(), steady_config());
  CHECK(own.get_executor() == asio::any_io_executor(io.get_executor()));
  auto const lock = own.get_lock(new_name());
  bool held = false;
  lock.async_lock(owner::make(), [&](error_code error) { held = !error; });
  std::promise<void> ended;
  std::thread runner([&] {
    io.run();
    ended.set_value();
  });
  auto end = ended.get_future();
  CHECK(wait_until([&] { return own.snapshot().held == 1; }));
  CHECK(end.wait_for(50ms) == std::future_status::timeout);
  own.close();
  CHECK(end.wait_for(patience) == std::future_status::ready);
  runner.join();
  CHECK(held);
}

TEST_CASE("close does not wait for an executor that nobody runs", "[server][contract]") {
  asio::io_context io;
  client own(io, common_server().uri(), steady_config());
  auto future = own.get_lock(new_name()).async_lock(owner::make(), asio::use_future);
  stopwatch since;
  own.close();
  CHECK(since.passed() < patience);
}

TEST_CASE("a thread pool of the caller runs a client too", "[server][contract]") {
  common_world w;
  asio::thread_pool pool(3);
  client own(pool, common_server().uri(), steady_config());
  auto const lock = own.get_lock(w.name);
  lock.lock();
  CHECK_FALSE(w.lock.try_lock());
  lock.unlock();
  auto future = lock.async_acquire(asio::use_future);
  CHECK(future.get().held());
  own.close();
  pool.join();
}

TEST_CASE("snapshot and events tell kinds of lock apart", "[server][contract]") {
  common_world w;
  w.lock.lock();
  lease const fair = w.own.get_fair_lock(new_name()).acquire();
  lease const written = w.own.get_read_write_lock(new_name()).write_lock().acquire();
  w.own.get_semaphore(new_name()).add_permits(1);
  w.lock.unlock();
  w.log.catch_up(w.own);
  CHECK(w.log.last(event_type::granted).kind == "read_write_lock");
  CHECK(w.log.last(event_type::released).kind == "lock");
  auto const now = w.own.snapshot();
  auto const of = [&](std::string_view kind) {
    auto const found = std::find_if(now.kinds.begin(), now.kinds.end(), [&](auto const& k) { return k.kind == kind; });
    REQUIRE(found != now.kinds.end());
    return *found;
  };
  CHECK(of("lock").acquired == 1);
  CHECK(of("lock").released == 1);
  CHECK(of("lock").held == 0);
  for (auto const* kind : {"fair_lock", "read_write_lock"}) {
    CHECK(of(kind).acquired == 1);
    CHECK(of(kind).held == 1);
    CHECK(of(kind).waiting == 0);
  }
  CHECK(now.acquired == 3);
  CHECK(now.held == 2);
}

TEST_CASE("the snapshot counts what happened and shows what is", "[server][contract]") {
  common_world w;
  w.lock.lock();
  auto waiter = std::async(std::launch::async, [&] {
    w.lock.lock();
    w.lock.unlock();
  });
  REQUIRE(w.log.wait_for(event_type::waiting, w.name));
  auto const during = w.own.snapshot();
  CHECK(during.held == 1);
  CHECK(during.waiting == 1);
  CHECK(during.connected);
  CHECK(during.fenced);
  CHECK_FALSE(during.messages_refused);
  w.lock.unlock();
  waiter.get();
  auto const after = w.own.snapshot();
  CHECK(after.acquired == 2);
  CHECK(after.contended == 1);
  CHECK(after.released == 2);
  CHECK(after.lost == 0);
  CHECK(after.held == 0);
  CHECK(after.waiting == 0);
  CHECK(after.in_doubt == 0);
  CHECK(after.reconnects == 0);
  CHECK(after.scripts >= 2);
  CHECK(after.commands >= after.scripts);
  CHECK(after.bytes_sent > 0);
  CHECK(after.bytes_received > 0);
  auto const sum = [](histogram const& h) {
    return std::accumulate(h.buckets.begin(), h.buckets.end(), std::uint64_t{0});
  };
  CHECK(sum(after.wait_time) == 2);
  CHECK(after.wait_time.sum > 0);
  CHECK(sum(after.hold_time) == 2);
}

TEST_CASE("events tell the life of a hold in order", "[server][contract]") {
  common_world w;
  {
    lease held = w.lock.acquire();
    CHECK(held.release() == release_result::released);
  }
  std::vector<event_type> types;
  w.log.catch_up(w.own);
  for (auto const& e : w.log.all())
    if (e.lock == w.name) types.push_back(e.type);
  CHECK(types == std::vector{event_type::attempt, event_type::granted, event_type::released});
  CHECK(w.log.count(event_type::connected) > 0);
  auto const granted = w.log.last(event_type::granted);
  CHECK(granted.owner.has_value());
  CHECK(granted.took > 0us);
}

TEST_CASE("events that wait for a slow listener are told in parts, and a log catches up with them all",
          "[server][contract]") {
  event_log log;
  std::promise<void> goes_on;
  auto settings = steady_config();
  settings.on_event = [tell = log.callback(), until = goes_on.get_future().share()](event const& e) {
    until.wait();
    std::this_thread::yield();
    tell(e);
  };
  client own(common_server().uri(), settings);
  auto const lock = own.get_lock(new_name());
  for (int i = 0; i < 50; ++i) {
    lock.lock();
    lock.unlock();
  }
  std::thread opens([&] { goes_on.set_value(); });
  log.catch_up(own);
  CHECK(log.count(event_type::released) == 50);
  opens.join();
}

TEST_CASE("embedded: starts a server of its own and stops it with the client", "[server][contract]") {
  auto const children = [] {
    auto const self = std::to_string(::getpid());
    int count = 0;
    for (auto const& entry : std::filesystem::directory_iterator("/proc")) {
      std::ifstream stat(entry.path() / "stat");
      std::string line;
      if (!std::getline(stat, line)) continue;
      auto const behind_name = line.rfind(')');
      std::istringstream rest(line.substr(behind_name + 1));
      std::string state, parent;
      rest >> state >> parent;
      count += parent == self && state != "Z";
    }
    return count;
  };
  auto const before = children();
  {
    client own("embedded:", steady_config());
    auto const lock = own.get_lock("first");
    lease held = lock.acquire();
    CHECK(held.held());
    CHECK(children() == before + 1);
  }
  CHECK(wait_until([&] { return children() == before; }));
}
