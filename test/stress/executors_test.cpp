// The same work wherever the client runs and whoever calls: its own thread, the caller's context, a pool, a strand.
#include <latchkey/latchkey.hpp>
#include <support/catch.hpp>
#include <support/run_coro.hpp>
#include <support/worlds.hpp>

#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>

#include <atomic>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace stress_executors {

using namespace latchkey;
using namespace latchkey::test;

namespace {

constexpr int coroutines = 24;
constexpr int threads = 8;
constexpr int turns = 20 / slowness;

asio::awaitable<void> take_turns(distributed_lock lock, long& sum, std::atomic<int>& ended) {
  auto const me = owner::make();
  for (int turn = 0; turn < turns; ++turn) {
    co_await lock.async_lock(me);
    co_await lock.async_lock(me);
    ++sum;
    co_await lock.async_unlock(me);
    co_await lock.async_unlock(me);
    co_await with_lock(lock, [&](lease& held) -> asio::awaitable<void> {
      if (held.held()) ++sum;
      co_return;
    });
  }
  ++ended;
}

// Coroutines on this executor and threads of their own, all on one lock of this client.
void work(client const& own, asio::any_io_executor const& where) {
  auto const lock = own.get_lock(new_name());
  long sum = 0;  // protected by the lock alone
  std::atomic<int> ended = 0;
  for (int i = 0; i < coroutines; ++i)
    asio::co_spawn(asio::make_strand(where), take_turns(lock, sum, ended), [](std::exception_ptr failure) {
      if (failure) std::rethrow_exception(failure);
    });
  {
    std::vector<std::jthread> all;
    for (int i = 0; i < threads; ++i)
      all.emplace_back([&] {
        for (int turn = 0; turn < turns; ++turn) {
          lock.lock();
          ++sum;
          lock.unlock();
        }
      });
  }
  REQUIRE(wait_until([&] { return ended == coroutines; }, 4 * patience));
  lock.lock();
  CHECK(sum == turns * (2 * coroutines + threads));
  lock.unlock();
  CHECK(own.snapshot().held == 0);
  CHECK(own.snapshot().lost == 0);
}

}  // namespace

TEST_CASE("a client with a thread of its own, callers on its executor and elsewhere", "[stress]") {
  client own(common_server().uri(), steady_config());
  work(own, own.get_executor());
  running_context callers(2);
  work(own, callers.get().get_executor());
}

TEST_CASE("a client on a context that one thread runs", "[stress]") {
  running_context context;
  client own(context.get(), common_server().uri(), steady_config());
  work(own, context.get().get_executor());
}

TEST_CASE("a client on a context that four threads run", "[stress]") {
  running_context context(4);
  client own(context.get(), common_server().uri(), steady_config());
  work(own, context.get().get_executor());
}

TEST_CASE("a client on a strand of a context that four threads run", "[stress]") {
  running_context context(4);
  client own(asio::make_strand(context.get()), common_server().uri(), steady_config());
  work(own, context.get().get_executor());
}

TEST_CASE("a client on a thread pool", "[stress]") {
  asio::thread_pool pool(4);
  {
    client own(pool.get_executor(), common_server().uri(), steady_config());
    work(own, pool.get_executor());
  }
  pool.join();
}

}  // namespace stress_executors
