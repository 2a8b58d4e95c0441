// What locking costs in commands: counted with MONITOR, whatever a client sends.
#include <latchkey/latchkey.hpp>
#include <support/catch.hpp>
#include <support/errors.hpp>
#include <support/redis_server.hpp>
#include <support/run_coro.hpp>
#include <support/worlds.hpp>

#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>

#include <atomic>
#include <chrono>
#include <future>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

// GCC 12 inlines how Asio allocates the frame of a coroutine, but not how it frees it, and warns of the difference.
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"

namespace show_commands {

using namespace latchkey;
using namespace latchkey::test;

namespace {

using commands = std::map<std::string, int>;

struct counted_lock : counted_world {
  bool warmed_up() { return counted_world::warmed_up({own.get_lock("way")}); }

  // The connections that have sent something since the last call.
  std::set<std::string> senders() {
    std::set<std::string> found;
    for (auto const& line : counter.take_lines()) {
      auto const at = line.find('[') + 1;
      found.insert(line.substr(at, line.find(']') - at));
    }
    return found;
  }
};

constexpr int rounds = 200 / slowness;
commands const one_each{{"EVALSHA", 2 * rounds}};

asio::awaitable<void> asynchronous_pairs(counted_lock& w) {
  auto const me = owner::make();
  for (int i = 0; i < rounds; ++i) {
    co_await w.lock.async_lock(me);
    co_await w.lock.async_unlock(me);
  }
  CHECK(w.counter.take() == one_each);
  for (int i = 0; i < rounds; ++i) {
    lease held = co_await w.lock.async_acquire();
    check_equal(co_await held.async_release(), release_result::released);
  }
  CHECK(w.counter.take() == one_each);
  for (int i = 0; i < rounds; ++i) co_await with_lock(w.lock, [](lease&) -> asio::awaitable<void> { co_return; });
  CHECK(w.counter.take() == one_each);
}

}  // namespace

TEST_CASE("blocking callers: one EVALSHA per free acquire and one per last release, by the direct lane",
          "[server][show]") {
  counted_lock w;
  REQUIRE(w.warmed_up());
  for (int i = 0; i < rounds; ++i) {
    w.lock.lock();
    w.lock.unlock();
  }
  CHECK(w.counter.take() == one_each);
  for (int i = 0; i < rounds; ++i) {
    CHECK(w.lock.try_lock(10s, 5s));
    w.lock.unlock();
  }
  CHECK(w.counter.take() == one_each);
  for (int i = 0; i < rounds; ++i) {
    lease held = w.lock.acquire();
    CHECK(held.release() == release_result::released);
  }
  CHECK(w.counter.take() == one_each);
  for (int i = 0; i < rounds; ++i) std::scoped_lock const guard(w.lock);
  auto const direct = w.senders();
  CHECK(direct.size() == 1);

  value_of(w.lock.async_is_locked(asio::use_future));
  CHECK(w.senders() != direct);
}

TEST_CASE("asynchronous callers: one EVALSHA per free acquire and one per last release", "[server][show]") {
  counted_lock w;
  REQUIRE(w.warmed_up());
  run_coro(asynchronous_pairs(w));
}

TEST_CASE("re-entering costs one EVALSHA each way", "[server][show]") {
  counted_lock w;
  REQUIRE(w.warmed_up());
  for (int depth = 0; depth < 10; ++depth) w.lock.lock();
  for (int depth = 0; depth < 10; ++depth) w.lock.unlock();
  CHECK(w.counter.take() == commands{{"EVALSHA", 20}});
}

TEST_CASE("what is asked in one turn of the loop leaves in few script calls", "[server][show]") {
  counted_lock w;
  REQUIRE(w.warmed_up());
  asio::io_context loop;
  client own(loop, w.server.uri(), unpinged_config());
  REQUIRE(connect_on(loop, own));
  w.counter.take();
  constexpr int locks = 480;
  std::vector<distributed_lock> all;
  for (int i = 0; i < locks; ++i) all.push_back(own.get_lock("many-" + std::to_string(i)));
  auto const me = owner::make();
  auto const ask = [&](auto start) {
    int left = locks, wrong = 0;
    asio::post(loop, [&] {
      for (auto const& lock : all)
        start(lock, [&](error_code error) {
          if (error) ++wrong;
          --left;
        });
    });
    REQUIRE(run_until(loop, [&] { return left == 0; }));
    CHECK(wrong == 0);
    auto const sent = w.counter.take();
    CHECK(sent.size() == 1);
    CHECK(sent.at("EVALSHA") <= locks / 30);
  };
  ask([&](auto const& lock, auto handler) { lock.async_lock(me, handler); });
  ask([&](auto const& lock, auto handler) { lock.async_unlock(me, handler); });
  CHECK(w.admin.integer("DBSIZE") == 0);
}

TEST_CASE("10,000 local waiters cost one subscription, and no command while they wait", "[server][show]") {
  counted_lock w;
  REQUIRE(w.warmed_up());
  constexpr int waiters = 10'000;
  foreign_holder const holder(w.server, w.name);
  std::atomic<int> closed = 0;
  std::atomic<int> other = 0;
  for (int i = 0; i < waiters; ++i)
    w.lock.async_acquire([&](error_code error, lease) { ++(error == errc::closed ? closed : other); });
  REQUIRE(wait_until([&] { return w.own.snapshot().waiting == waiters && w.admin.listeners(w.name) == 1; }));
  // The head tries when it comes and once more when the server listens for it.
  auto total = w.counter.take();
  CHECK(wait_until([&] {
    for (auto const& [name, times] : w.counter.take()) total[name] += times;
    return total["EVALSHA"] >= 2;
  }));
  CHECK(total["SUBSCRIBE"] == 1);
  CHECK(total["EVALSHA"] == 2);

  // Not a wait for something: for one second there is to be nothing.
  std::this_thread::sleep_for(1s);
  CHECK(w.counter.take() == commands{});
  auto late = w.lock.async_acquire(asio::use_future);
  REQUIRE(wait_until([&] { return w.own.snapshot().waiting == waiters + 1; }));
  CHECK(w.counter.take() == commands{});
  w.own.close();
  CHECK(error_in(std::move(late)) == errc::closed);
  CHECK(wait_until([&] { return closed + other == waiters; }));
  CHECK(other == 0);
}

// { auto a = k.acquire(); } { auto b = k.acquire(); } never finds its own lock busy.

namespace {

constexpr int scopes = 2'000 / (slowness * slowness);
const acquire_options one_attempt{.wait = 0ms};

// With the lease in a scope of its own.
bool finds_busy(distributed_lock const& lock, acquire_options const& how = one_attempt) { return !lock.acquire(how); }

asio::awaitable<bool> finds_busy_later(distributed_lock const& lock) {
  co_return !co_await lock.async_acquire(one_attempt, asio::use_awaitable);
}

}  // namespace

TEST_CASE("a thread never finds its own lock busy after a lease went out of scope", "[server][show]") {
  common_world w;
  int busy = 0;
  for (int i = 0; i < 2 * scopes; ++i) busy += finds_busy(w.lock);
  CHECK(busy == 0);
}

TEST_CASE("a thread never finds its own lock busy with another lock in between", "[server][show]") {
  common_world w;
  auto const other = w.own.get_lock(new_name());
  int busy = 0;
  for (int i = 0; i < scopes; ++i)
    for (distributed_lock const& one : {w.lock, other, w.lock}) busy += finds_busy(one);
  CHECK(busy == 0);
}

TEST_CASE("one owner never finds its own lock busy after a lease went out of scope", "[server][show]") {
  common_world w;
  acquire_options mine = one_attempt;
  mine.owner = owner::make();
  int busy = 0;
  for (int i = 0; i < scopes; ++i) busy += finds_busy(w.lock, mine);
  CHECK(busy == 0);
}

TEST_CASE("a coroutine never finds its own lock busy after a lease went out of scope", "[server][show]") {
  asio::io_context io;  // outlives the thread of the client that tells it of ends
  common_world w;
  bool const on_its_own_thread = GENERATE(true, false);
  client here(io, common_server().uri(), steady_config());
  client const& used = on_its_own_thread ? w.own : here;
  auto const lock = used.get_lock(w.name);
  auto const other = used.get_lock(new_name());
  int busy = 0;
  run_coro(
      io,
      [](distributed_lock one, distributed_lock two, int& count) -> asio::awaitable<void> {
        for (int i = 0; i < scopes; ++i) {
          count += co_await finds_busy_later(one);
          count += co_await finds_busy_later(one);
          if (i % 2 == 0) count += co_await finds_busy_later(two);
        }
      }(lock, other, busy),
      4 * patience);
  CHECK(busy == 0);
}

}  // namespace show_commands
