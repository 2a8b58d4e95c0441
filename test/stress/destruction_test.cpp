// The client is destroyed after the k-th handler of a small history, for every k.
//
// What must hold each time: no call completes twice; once the context has run out, every call has completed; nothing is
// leaked and nothing crashes (the sanitizers look at that).
#include <latchkey/latchkey.hpp>
#include <support/catch.hpp>
#include <support/redis_server.hpp>
#include <support/run_coro.hpp>
#include <support/worlds.hpp>

#include <boost/asio/use_awaitable.hpp>

#include <algorithm>
#include <atomic>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace stress_destruction {

using namespace latchkey;
using namespace latchkey::test;

namespace {

config brisk() {
  auto settings = steady_config();
  settings.close_timeout = 500ms * slowness;
  return settings;
}

// Calls on the way, each with the number of its completions.
struct calls {
  std::vector<int> completions;

  std::size_t begin() {
    completions.push_back(0);
    return completions.size() - 1;
  }
  auto handler() {
    return [this, at = begin()](auto const&...) { ++completions[at]; };
  }
  template <class Then>
  auto handler(Then then) {
    return [this, at = begin(), next = std::move(then)](auto const& error, auto&&... values) mutable {
      if (++completions[at] == 1) next(error, std::forward<decltype(values)>(values)...);
    };
  }
  int most() const {
    int found = 0;
    for (int const times : completions) found = std::max(found, times);
    return found;
  }
  int missing() const {
    int count = 0;
    for (int const times : completions) count += times == 0;
    return count;
  }
};

// Lock, re-enter, wait behind oneself, unlock; wait behind a stranger, with and without end; a lease that is extended,
// one that is dropped, one that listens for its loss; with_lock; a query; a coroutine.
// The answer is who locks without a lease.
owner begin_history(calls& all, client const& own, asio::io_context& io, std::string const& name,
                    std::string const& foreign) {
  auto const lock = own.get_lock(name);
  auto const me = owner::make();
  lock.async_lock(me, all.handler([&all, lock, me](error_code) {
    lock.async_lock(me, all.handler([&all, lock, me](error_code) {
      lock.async_unlock(me, all.handler([&all, lock, me](error_code) { lock.async_unlock(me, all.handler()); }));
    }));
    lock.async_acquire(all.handler([&all](error_code, lease held) {
      if (!held) return;  // an empty one has no executor of its own
      auto const kept = std::make_shared<lease>(std::move(held));
      kept->on_lost([kept = std::weak_ptr(kept)](error_code) {});
      kept->async_extend(20s, all.handler([&all, kept](error_code, bool) { kept->async_release(all.handler()); }));
    }));
    lock.async_acquire(all.handler([](error_code, lease) {}));
  }));
  own.get_lock(foreign).async_lock(owner::make(), all.handler());
  own.get_lock(foreign).async_try_lock(owner::make(), 20ms, all.handler());
  own.get_lock(name + "-query").async_is_locked(all.handler());
  with_lock(
      own.get_lock(name + "-body"),
      [again = lock](lease&) -> asio::awaitable<void> {
        co_await again.async_hold_count(owner::make(), asio::use_awaitable);
      },
      all.handler());
  asio::co_spawn(
      io,
      [](distributed_lock one) -> asio::awaitable<void> {
        lease held = co_await one.async_acquire(asio::use_awaitable);
        co_await one.async_is_locked(asio::use_awaitable);
      }(own.get_lock(name + "-coroutine")),
      all.handler());
  return me;
}

enum class after_that { context_runs_out, context_is_destroyed };

// How many handlers ran before the end of the client; fewer than `k` when the history was over earlier.
int destroy_after(int k, after_that end) {
  static redis_server const server;
  static int count = 0;
  std::string const name = "lock-" + std::to_string(++count);
  foreign_holder holder(server, name + "-foreign", 60s);
  calls all;
  int ran = 0;
  owner locks = owner::make();
  {
    asio::io_context io;
    std::optional<client> own(std::in_place, io, server.uri(), brisk());
    locks = begin_history(all, *own, io, name, name + "-foreign");
    // At the end one call is left: it waits for the stranger without end.
    while (ran < k && all.missing() > 1) {
      REQUIRE(io.run_one_for(patience) == 1);
      ++ran;
    }
    own.reset();
    if (end == after_that::context_runs_out) {
      auto const limit = clock::now() + patience;
      while (!io.stopped() && clock::now() < limit) io.run_one_until(limit);
      CHECK(io.stopped());
      CHECK(all.missing() == 0);
    }
  }
  CHECK(all.most() <= 1);
  raw_redis admin = server.admin();
  if (end == after_that::context_runs_out)
    for (char const* kind : {"-body", "-coroutine"}) CHECK(admin.integer("EXISTS", name + kind) == 0);
  // What no lease shows is left to its lease, and nothing else.
  auto const left = admin.hash(name);
  if (!left.empty()) CHECK(admin.integer("PTTL", name) > 0);
  // A context that is destroyed takes unsent releases along.
  if (end == after_that::context_runs_out) {
    for (auto const& [field, holds] : left) CHECK(field.ends_with(":" + to_string(locks)));
    if (ran < k) CHECK(left.empty());
  }
  return ran;
}

int for_every_k(after_that end) {
  for (int k = 0;; ++k) {
    INFO("destroyed after handler " << k);
    if (destroy_after(k, end) < k) return k;
    REQUIRE(k < 2'000);
  }
}

}  // namespace

TEST_CASE("every call completes once if the client is destroyed after the k-th handler, for every k", "[stress]") {
  std::cout << "the history has " << for_every_k(after_that::context_runs_out) << " handlers\n";
}

TEST_CASE("no call completes twice if client and context are destroyed after the k-th handler, for every k",
          "[stress]") {
  std::cout << "the history has " << for_every_k(after_that::context_is_destroyed) << " handlers\n";
}

TEST_CASE("every call completes once if a client with a thread of its own is destroyed after its k-th event",
          "[stress]") {
  redis_server const server;
  for (int k = 1; k <= 40; ++k) {
    INFO("destroyed after event " << k);
    std::string const name = "lock-" + std::to_string(k);
    foreign_holder holder(server, name + "-foreign", 60s);
    std::atomic<int> events = 0;
    std::atomic<int> started = 0;
    std::atomic<int> completed = 0;
    auto settings = brisk();
    settings.on_event = [&](event const&) {
      ++events;
      events.notify_all();
    };
    std::optional<client> own(std::in_place, server.uri(), settings);
    auto const done = [&](auto const&...) { ++completed; };
    auto const lock = own->get_lock(name);
    auto const blocked = own->get_lock(name + "-foreign");
    std::vector<std::jthread> threads;
    for (int i = 0; i < 2; ++i)
      threads.emplace_back([&, i] {
        ++started;
        try {
          if (i == 0) blocked.lock();
          for (;;) {
            lease const held = lock.acquire();
          }
        } catch (lock_error const& error) {
          if (error.code() == errc::closed) ++completed;
        }
      });
    for (int i = 0; i < 20; ++i) {
      ++started;
      lock.async_acquire(done);
      ++started;
      blocked.async_acquire(done);
    }
    for (int seen = events; seen < k; seen = events) events.wait(seen);
    own.reset();
    threads.clear();
    CHECK(wait_until([&] { return completed == started; }));
  }
}

}  // namespace stress_destruction
