#include <latchkey/latchkey.hpp>
#include <support/catch.hpp>
#include <support/configs.hpp>
#include <support/patience.hpp>
#include <support/redis_server.hpp>
#include <support/run_coro.hpp>

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>

#include <atomic>
#include <cstddef>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

using namespace latchkey;
using namespace latchkey::test;

namespace asio = boost::asio;

// The way of completions to their handlers, with the turns of a client, which complete at once. The queue alone:
// engine_deliveries_test.cpp.

namespace {

struct asking_handler {
  std::function<void()> does;
  void operator()(error_code) const { does(); }
};

}  // namespace

template <class Candidate>
struct boost::asio::associated_executor<asking_handler, Candidate> {
  using type = Candidate;
  static type get(asking_handler const&, Candidate const& offered = {}) noexcept {
    return asio::prefer(offered, asio::execution::relationship.fork);
  }
};

namespace {

struct turning {
  redis_server server;
  asio::io_context io{1};
  std::optional<client> own{std::in_place, io, server.uri(), [] {
                              auto made = steady_config();
                              made.local_turns = true;
                              made.local_handoff.warm_up = 0;
                              return made;
                            }()};
  distributed_lock lock = own->get_lock("k");
  owner const me = owner::make();
  std::vector<int> seen;

  void take() {
    bool held = false;
    lock.async_lock(me, [&](error_code failed) { held = !failed; });
    REQUIRE(run_until(io, [&] { return held; }));
    io.restart();
  }
};

}  // namespace

TEST_CASE("deliveries: the end of a client does not overtake handlers of calls that ended earlier") {
  turning t;
  t.take();
  bool inline_call = false, inside = false;
  asio::post(t.io, [&] {
    t.lock.async_lock(t.me, [&](error_code) {
      inside = true;
      for (int i = 0; i < 50; ++i)
        t.lock.async_lock(t.me, [&, i](error_code failed) {
          inline_call |= inside;
          CHECK_FALSE(failed);
          t.seen.push_back(i);
        });
      lease().async_release([](error_code, release_result) {});
      t.own->async_close([&](error_code) { t.seen.push_back(-1); });
      inside = false;
    });
  });
  t.io.run();
  CHECK_FALSE(inline_call);
  REQUIRE(t.seen.size() == 51);
  for (int i = 0; i < 50; ++i) CHECK(t.seen[static_cast<std::size_t>(i)] == i);
  CHECK(t.seen.back() == -1);
}

TEST_CASE("deliveries: a client may go in a handler, and those behind it are called") {
  turning t;
  t.take();
  t.lock.async_lock(t.me, [&](error_code) {
    for (int i = 0; i < 20; ++i) t.lock.async_lock(t.me, [&](error_code) { t.seen.push_back(1); });
    t.lock.async_lock(t.me, [&](error_code) { t.own.reset(); });
    for (int i = 0; i < 20; ++i) t.lock.async_lock(t.me, [&](error_code) { t.seen.push_back(2); });
  });
  t.io.run();
  CHECK(t.seen.size() == 40);
}

TEST_CASE("deliveries: a slot reaches no call that is over, and each handler runs where it belongs") {
  turning t;
  t.take();
  asio::thread_pool pool(2);
  auto const strand = asio::make_strand(pool.get_executor());
  std::atomic<int> elsewhere{0}, astray{0};
  std::vector<std::unique_ptr<asio::cancellation_signal>> signals;
  t.lock.async_lock(t.me, [&](error_code) {
    for (int i = 0; i < 30; ++i) {
      auto& signal = *signals.emplace_back(std::make_unique<asio::cancellation_signal>());
      t.lock.async_lock(t.me, asio::bind_cancellation_slot(signal.slot(), [&](error_code failed) {
                          CHECK_FALSE(failed);
                          t.seen.push_back(1);
                        }));
      t.lock.async_lock(t.me, asio::bind_executor(strand, [&](error_code failed) {
                          if (failed || !strand.running_in_this_thread()) ++astray;
                          ++elsewhere;
                        }));
    }
    for (auto& one : signals) one->emit(asio::cancellation_type::terminal);
  });
  REQUIRE(run_until(t.io, [&] { return t.seen.size() == 30 && elsewhere == 30; }));
  CHECK(astray == 0);
  t.own->close();
  t.io.restart();
  t.io.run();
  pool.join();
}

TEST_CASE("deliveries: an answer that is read meanwhile does not overtake the rest of a queue") {
  turning t;
  t.take();
  auto const before = t.own->snapshot().commands;
  t.server.pause();
  t.own->get_lock("other").async_is_locked([&](error_code, bool) { t.seen.push_back(-1); });
  REQUIRE(run_until(t.io, [&] { return t.own->snapshot().commands > before; }));
  t.io.restart();
  t.lock.async_lock(t.me, [&](error_code) {
    t.server.resume();
    t.server.admin().ok("PING");  // it answers one after the other
    for (int i = 0; i < 40; ++i) t.lock.async_lock(t.me, [&, i](error_code) { t.seen.push_back(i); });
  });
  REQUIRE(run_until(t.io, [&] { return t.seen.size() == 41; }));
  for (int i = 0; i < 40; ++i) CHECK(t.seen[static_cast<std::size_t>(i)] == i);
  t.own->close();
  t.io.restart();
  t.io.run();
}

TEST_CASE("deliveries: an answer that is read does not overtake what was posted before") {
  turning t;
  t.take();
  auto const before = t.own->snapshot().commands;
  t.server.pause();
  t.own->get_lock("other").async_is_locked([&](error_code, bool) { t.seen.push_back(2); });
  REQUIRE(run_until(t.io, [&] { return t.own->snapshot().commands > before; }));
  t.io.restart();
  asio::post(t.io, [&] {
    t.server.resume();
    t.server.admin().ok("PING");  // it answers one after the other
    // The context looks at its sockets before this runs, and runs what it finds there behind it.
    asio::post(t.io, [&] { t.lock.async_lock(t.me, [&](error_code) { t.seen.push_back(1); }); });
  });
  REQUIRE(run_until(t.io, [&] { return t.seen.size() == 2; }));
  CHECK(t.seen == std::vector<int>{1, 2});
  t.own->close();
  t.io.restart();
  t.io.run();
}

TEST_CASE("deliveries: an erased handler is called in its order") {
  turning t;
  t.take();
  using erased = asio::any_completion_handler<void(error_code)>;
  auto const note = [&](int what) { return [&t, what](error_code) { t.seen.push_back(what); }; };
  t.lock.async_lock(t.me, [&](error_code) {
    t.lock.async_lock(t.me, note(1));
    t.lock.async_lock(t.me, erased(note(2)));
    t.lock.async_lock(t.me, erased(asio::bind_executor(t.io.get_executor(), note(3))));
    t.lock.async_lock(t.me, note(4));
    t.own->async_close(erased(note(5)));
  });
  t.io.run();
  CHECK(t.seen == std::vector<int>{1, 2, 3, 4, 5});
}

TEST_CASE("deliveries: an adapter that asks the executor it is offered is offered one") {
  turning t;
  t.take();
  t.lock.async_lock(t.me, asking_handler{[&] { t.seen.push_back(1); }});
  t.lock.async_lock(t.me, [&](error_code) { t.seen.push_back(2); });
  t.own->async_close([&](error_code) { t.seen.push_back(3); });
  t.io.run();
  CHECK(t.seen == std::vector<int>{1, 2, 3});
}

TEST_CASE("deliveries: with threads of the client's own each handler runs where it belongs") {
  redis_server const server;
  auto settings = steady_config();
  settings.local_turns = true;
  settings.local_handoff.warm_up = 0;
  client own(server.uri(), settings);
  auto const lock = own.get_lock("k");
  auto const me = owner::make();
  asio::io_context io;
  int astray = 0;
  auto const play = [&]() -> asio::awaitable<void> {
    for (int i = 0; i < 100; ++i) {
      co_await lock.async_lock(me);
      if (!io.get_executor().running_in_this_thread()) ++astray;
    }
    for (int i = 0; i < 100; ++i) {
      co_await lock.async_unlock(me);
      if (!io.get_executor().running_in_this_thread()) ++astray;
    }
  };
  run_coro(io, play());
  CHECK(astray == 0);
  // And those that have no executor, on the thread for callbacks.
  std::promise<std::thread::id> done;
  std::vector<std::thread::id> where;
  lock.async_lock(me, [&](error_code) {
    for (int i = 0; i < 40; ++i) lock.async_lock(me, [&](error_code) { where.push_back(std::this_thread::get_id()); });
    lock.async_lock(me, [&](error_code) { done.set_value(std::this_thread::get_id()); });
  });
  auto told = done.get_future();
  REQUIRE(told.wait_for(patience) == std::future_status::ready);
  CHECK(where == std::vector<std::thread::id>(40, told.get()));
}
