// Holds that end by another call of their own client: their objects are told, and nobody else is granted before.
#include <outside/outsider.hpp>
#include <support/catch.hpp>
#include <support/configs.hpp>
#include <support/errors.hpp>
#include <support/event_log.hpp>
#include <support/patience.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>

#include <atomic>
#include <future>
#include <optional>
#include <thread>

using namespace latchkey;
using namespace latchkey::outside;

namespace {

permit_semaphore one_permit(client& of, std::string const& name) {
  auto const all = of.get_permit_semaphore(name);
  all.set_permits(1);
  return all;
}

template <class Held>
void check_lost(Held& held) {
  CHECK_FALSE(held.held());
  CHECK(held.remaining() == 0ms);
  // The token and the callback come on the client's executor.
  CHECK(test::wait_until([&] { return held.lost().stop_requested(); }));
  auto const told = std::make_shared<std::promise<error_code>>();
  held.on_lost([told](error_code why) { told->set_value(why); });
  CHECK(test::value_of(told->get_future()) == errc::lease_lost);
  CHECK(held.release() == release_result::expired);
}

}  // namespace

TEST_CASE_METHOD(two_clients, "a permit that is released by its id is told", "[outside][edge-2]") {
  auto const all = one_permit(ours, name);
  permit held = all.acquire_permit();
  REQUIRE(held.held());
  SECTION("try_release") { CHECK(all.try_release(held.id())); }
  SECTION("release") { all.release(held.id()); }
  SECTION("async_release") { CHECK_FALSE(test::error_in(all.async_release(held.id(), asio::use_future))); }
  auto const theirs = second.get_permit_semaphore(name).try_acquire();
  CHECK(theirs);
  check_lost(held);
  CHECK(ours.snapshot().held == 0);
  CHECK(second.get_permit_semaphore(name).try_release(theirs.value()));
}

TEST_CASE_METHOD(two_clients, "a permit whose id is gone already is told by the release that finds nothing",
                 "[outside][edge-2]") {
  auto const all = one_permit(ours, name);
  permit held = all.acquire_permit();
  REQUIRE(second.get_permit_semaphore(name).try_release(held.id()));
  CHECK_FALSE(all.try_release(held.id()));
  check_lost(held);
}

TEST_CASE_METHOD(two_clients, "a permit whose lease is set anew by its id shows that", "[outside][edge-2]") {
  auto const all = one_permit(ours, name);
  permit held = all.acquire_permit({.lease = 60s});
  CHECK(all.update_lease_time(held.id(), 5s));
  CHECK(held.remaining() <= 5s);
  CHECK(all.update_lease_time(held.id(), 120s));
  CHECK(held.remaining() > 100s);
  CHECK(all.update_lease_time(held.id(), test::brief_lease));
  permit theirs = second.get_permit_semaphore(name).acquire_permit({.wait = 20s});
  CHECK(theirs.held());
  check_lost(held);
}

TEST_CASE_METHOD(two_clients, "set_permits takes no permit away that is shown", "[outside][edge-2]") {
  auto const all = one_permit(ours, name);
  permit held = all.acquire_permit();
  all.set_permits(0);
  all.set_permits(1);
  CHECK(held.held());
  CHECK_FALSE(second.get_permit_semaphore(name).try_acquire());
  CHECK(held.release() == release_result::released);
}

TEST_CASE_METHOD(two_clients, "force_unlock ends the holds of its own client at once", "[outside][edge-3]") {
  auto const kind = GENERATE(range(0, 8));
  INFO("kind " << kind);
  auto const of = [&](client& from) -> distributed_lock {
    switch (kind) {
      case 0: return from.get_lock(name);
      case 1: return from.get_non_reentrant_lock(name);
      case 2: return from.get_fair_lock(name);
      case 3: return from.get_spin_lock(name);
      case 4: return from.get_fenced_lock(name);
      case 5: return from.get_plain_lock(name);
      case 6: return from.get_read_write_lock(name).read_lock();
      default: return from.get_read_write_lock(name).write_lock();
    }
  };
  lease held = of(ours).acquire({.wait = 0ms});
  REQUIRE(held);
  CHECK(of(ours).force_unlock());
  lease theirs = of(second).acquire({.wait = 0ms});
  CHECK(theirs.held());
  check_lost(held);
  CHECK(theirs.held());
  if (kind != 6) CHECK_FALSE(of(ours).try_lock());  // readers share
  CHECK(theirs.release() == release_result::released);
}

TEST_CASE("force_unlock by the other side, or another kind of the same key, tells as well", "[outside][edge-3]") {
  client ours(shared_server().uri());
  auto const name = fresh_name();
  lease writes = ours.get_read_write_lock(name).write_lock().acquire();
  CHECK_FALSE(ours.get_read_write_lock(name).read_lock().force_unlock());
  CHECK(writes.held());
  CHECK(ours.get_lock(name).force_unlock());
  check_lost(writes);
}

TEST_CASE("force_unlock of a member is the loss of the multi lock", "[outside][edge-3]") {
  client ours(shared_server().uri());
  auto const a = fresh_name(), b = fresh_name();
  lease held = ours.get_multi_lock({ours.get_lock(a), ours.get_lock(b)}).acquire();
  REQUIRE(held.held());
  CHECK(ours.get_lock(a).force_unlock());
  check_lost(held);
  CHECK(test::wait_until([&] { return !shared_server().exists(b); }));
}

TEST_CASE_METHOD(one_lock, "unlock after force_unlock says that the hold was lost", "[outside][edge-3]") {
  lock.lock();
  CHECK(lock.force_unlock());
  CHECK(second.get_lock(name).try_lock());
  CHECK(test::error_of([&] { lock.unlock(); }) == errc::lease_lost);
  CHECK(second.get_lock(name).is_held_by_current_thread());
  second.get_lock(name).unlock();
}

// What a lease shows beside what the server has.

TEST_CASE("a lease, a second client and redis-cli say the same of a hold", "[outside]") {
  server& redis = shared_server();
  client ours(redis.uri());
  client second(redis.uri());
  auto const name = fresh_name();
  lease held = ours.get_lock(name).acquire();
  CHECK(held.held());
  CHECK_FALSE(second.get_lock(name).try_lock());
  CHECK(redis.hash(name) == std::map<std::string, std::string>{{ours.id() + ":" + to_string(held.owner()), "1"}});
  auto const shown = redis.pttl(name);
  CHECK(held.remaining() <= shown + 5ms);
  CHECK(held.release() == release_result::released);
  CHECK_FALSE(held.held());
  CHECK_FALSE(redis.exists(name));
}

// Does a client that always wants a lock leave others their share?

namespace {

namespace asio = boost::asio;

using getter = distributed_lock (*)(client&, std::string);

struct named_kind {
  char const* name;
  getter get;
};

constexpr named_kind kinds[] = {
    {"reentrant", [](client& c, std::string n) { return c.get_lock(std::move(n)); }},
    {"fair", [](client& c, std::string n) { return c.get_fair_lock(std::move(n)); }},
    {"fenced", [](client& c, std::string n) { return c.get_fenced_lock(std::move(n)); }},
    {"write", [](client& c, std::string n) { return c.get_read_write_lock(std::move(n)).write_lock(); }},
};

// Takes it and drops it, and takes it again in the same turn of the loop.
asio::awaitable<void> keep_taking(distributed_lock lock, std::optional<owner> me, std::atomic<bool> const& stop,
                                  std::atomic<int>& turns) {
  while (!stop) {
    acquire_options options{.wait = 1s};
    options.owner = me;
    lease const held = co_await lock.async_acquire(options, asio::use_awaitable);
    if (held) ++turns;
  }
}

}  // namespace

TEST_CASE("a loop that drops a lease and takes it again leaves a second client its turn", "[outside][edge-33]") {
  bool const same_owner = GENERATE(true, false);
  auto const kind = GENERATE(from_range(std::begin(kinds), std::end(kinds)));
  CAPTURE(kind.name, same_owner);
  server& redis = shared_server();
  asio::io_context io;
  client busy(io, redis.uri());
  client second(redis.uri());
  auto const name = fresh_name();
  std::atomic<bool> stop = false;
  std::atomic<int> turns = 0;
  auto const me = same_owner ? std::optional(busy.new_owner()) : std::nullopt;
  asio::co_spawn(io, keep_taking(kind.get(busy, name), me, stop, turns), asio::detached);
  std::thread loop([&] { io.run(); });
  // Each time it asks when the loop is well under way.
  int served = 0;
  for (int i = 0; i < 5; ++i) {
    int const seen = turns;
    CHECK(test::wait_until([&] { return turns > seen + 20; }));
    if (lease const got = kind.get(second, name).acquire({.wait = 5s})) ++served;
  }
  CHECK(served == 5);
  stop = true;
  second.close();
  busy.close();
  loop.join();
}
