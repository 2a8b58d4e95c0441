// Callbacks of a client with its own thread, and where handlers of leases run that are over.
#include <outside/outsider.hpp>
#include <support/catch.hpp>
#include <support/errors.hpp>
#include <support/event_log.hpp>
#include <support/run_coro.hpp>

#include <boost/asio/bind_executor.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/system_executor.hpp>
#include <boost/asio/use_future.hpp>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <future>
#include <iterator>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace latchkey;
using namespace latchkey::outside;
using namespace latchkey::test;

namespace {

std::ptrdiff_t threads() {
  std::filesystem::directory_iterator const all("/proc/self/task");
  return std::distance(begin(all), end(all));
}

// A callback that stays until the test lets it go.
class doorway {
 public:
  void pass() {
    entered_.set_value();
    open_.wait();
  }
  bool entered() { return in_.wait_for(patience) == std::future_status::ready; }
  void open() { opener_.set_value(); }

 private:
  std::promise<void> entered_, opener_;
  std::future<void> in_ = entered_.get_future();
  std::shared_future<void> open_ = opener_.get_future().share();
};

config renewed_each(milliseconds third) { return {.lock_watchdog_timeout = 3 * third}; }

}  // namespace

TEST_CASE("a slow on_lost stops the renewal of no other hold", "[outside][edge-26]") {
  server& redis = shared_server();
  doorway door;
  client ours(redis.uri(), renewed_each(1s * slowness));
  auto const name = fresh_name();
  lease held = ours.get_lock(fresh_name()).acquire();
  lease lost = ours.get_lock(name).acquire();
  lost.on_lost([&] { door.pass(); });
  redis.cli({"DEL", name});
  REQUIRE(door.entered());
  auto const before = ours.snapshot().renewals;
  CHECK(wait_until([&] { return ours.snapshot().renewals >= before + 3; }));
  CHECK(held.held());
  door.open();
}

TEST_CASE("a slow handler and a slow on_event stop no renewal, and events keep their order", "[outside][edge-26]") {
  server& redis = shared_server();
  doorway of_a_handler, of_an_event;
  std::mutex mutex;
  std::vector<std::pair<event_type, std::string>> seen;
  std::atomic<bool> first{true};
  auto settings = renewed_each(1s * slowness);
  settings.on_event = [&](event const& what) {
    if (first.exchange(false)) of_an_event.pass();
    std::scoped_lock const lock(mutex);
    if (!what.lock.empty()) seen.emplace_back(what.type, what.lock);
  };
  std::vector<std::string> names;
  {
    client ours(redis.uri(), settings);
    lease held = ours.get_lock(fresh_name()).acquire();
    REQUIRE(of_an_event.entered());
    CHECK(wait_until([&] { return ours.snapshot().renewals >= 2; }));
    for (int i = 0; i < 50; ++i) {
      names.push_back(fresh_name());
      ours.get_lock(names.back()).lock();
      ours.get_lock(names.back()).unlock();
    }
    of_an_event.open();
    ours.get_lock(fresh_name()).async_lock(owner::make(), [&](error_code) { of_a_handler.pass(); });
    REQUIRE(of_a_handler.entered());
    auto const before = ours.snapshot().renewals;
    CHECK(wait_until([&] { return ours.snapshot().renewals >= before + 3; }));
    CHECK(held.held());
    of_a_handler.open();
  }
  std::scoped_lock const lock(mutex);
  std::vector<std::pair<event_type, std::string>> expected, of_these;
  for (auto const& name : names)
    for (auto const type : {event_type::attempt, event_type::granted, event_type::released})
      expected.emplace_back(type, name);
  for (auto const& one : seen)
    if (std::find(names.begin(), names.end(), one.second) != names.end()) of_these.push_back(one);
  CHECK(of_these == expected);
}

TEST_CASE("a client without callbacks has one thread, and the second comes with the first of them",
          "[outside][edge-26]") {
  server& redis = shared_server();
  REQUIRE(wait_until(unchanged(threads, 50ms)));  // those of earlier tests are gone
  auto const before = threads();
  client ours(redis.uri());
  auto const lock = ours.get_lock(fresh_name());
  lock.lock();
  lock.unlock();
  asio::io_context io;
  error_code failed = errc::busy;
  lock.async_lock(owner::make(), asio::bind_executor(io, [&](error_code error) { failed = error; }));
  REQUIRE(run_until(io, [&] { return !failed; }));
  CHECK(wait_until([&] { return threads() == before + 1; }));
  std::promise<std::thread::id> where;
  lock.async_is_locked([&](error_code, bool) { where.set_value(std::this_thread::get_id()); });
  CHECK(value_of(where.get_future()) != std::this_thread::get_id());
  CHECK(wait_until([&] { return threads() == before + 2; }));
  std::promise<void> timed;
  asio::steady_timer timer(ours.get_executor(), 1ms);
  timer.async_wait([&](error_code) { timed.set_value(); });
  CHECK(timed.get_future().wait_for(patience) == std::future_status::ready);
}

TEST_CASE("close() and the destructor return from a callback", "[outside][edge-26]") {
  server& redis = shared_server();
  std::promise<error_code> blocking;
  std::promise<void> gone;
  auto ours = std::make_unique<client>(redis.uri());
  auto const lock = ours->get_lock(fresh_name());
  lock.async_lock(owner::make(), [&](error_code) {
    blocking.set_value(error_of([&] { return lock.is_locked(); }));
    ours->close();
    ours.reset();
    gone.set_value();
  });
  CHECK(value_of(blocking.get_future()) == errc::would_deadlock);
  CHECK(gone.get_future().wait_for(patience) == std::future_status::ready);
}

TEST_CASE("a listener that is too slow loses events, hears how many, and hears of every loss", "[outside][edge-26]") {
  server& redis = shared_server();
  doorway door;
  std::atomic<bool> first{true};
  event_log log;
  auto settings = renewed_each(1s * slowness);
  settings.on_event = [&, heard = log.callback()](event const& what) {
    if (first.exchange(false)) door.pass();
    heard(what);
  };
  client ours(redis.uri(), settings);
  auto const name = fresh_name(), last = fresh_name();
  for (int i = 0; i < 2'000; ++i) {
    ours.get_lock(name).lock();
    ours.get_lock(name).unlock();
  }
  lease lost = ours.get_lock(last).acquire();
  redis.cli({"DEL", last});
  REQUIRE(wait_until([&] { return !lost.held(); }));
  door.open();
  CHECK(log.wait_for(event_type::lost, last));
  CHECK(wait_until([&] { return log.words().find("events were left out") != std::string::npos; }));
  CHECK(log.count(event_type::released, name) < 2'000);
}

TEST_CASE("handlers of a lease that is over run on its client's executor and count as its work", "[outside][edge-11]") {
  server& redis = shared_server();
  asio::io_context io;
  client ours(io, redis.uri());
  auto const here = std::this_thread::get_id();
  lease held;
  ours.get_lock(fresh_name()).async_acquire([&](error_code, lease granted) { held = std::move(granted); });
  REQUIRE(run_until(io, [&] { return static_cast<bool>(held); }));
  bool released = false;
  held.async_release([&](error_code, release_result) { released = true; });
  REQUIRE(run_until(io, [&] { return released; }));
  ours.close();
  io.restart();
  io.run();  // nothing is left but what comes now
  std::vector<std::thread::id> where;
  held.async_extend(1s, [&](error_code, bool extended) {
    CHECK_FALSE(extended);
    where.push_back(std::this_thread::get_id());
  });
  held.async_release([&](error_code, release_result result) {
    CHECK(result == release_result::expired);
    where.push_back(std::this_thread::get_id());
  });
  CHECK(where.empty());
  io.restart();
  io.run();
  CHECK(where == std::vector{here, here});
  CHECK(lease().async_release(asio::use_future).get() == release_result::expired);  // it knows no client
}

TEST_CASE("a listener who is never done with its events delays other callbacks, and ends none", "[outside][edge-26]") {
  config settings;
  settings.on_event = [](event const&) { std::this_thread::sleep_for(1ms); };
  server redis;
  client own(redis.uri(), settings);
  auto const busy = own.get_lock(fresh_name());
  std::jthread const flood([&](std::stop_token const& stop) {
    while (!stop.stop_requested())
      if (busy.try_lock()) busy.unlock();
  });
  REQUIRE(wait_until([&] { return own.snapshot().released > 1'000; }));
  std::promise<void> done;
  own.get_lock(fresh_name()).async_is_locked([&](error_code, bool) { done.set_value(); });
  CHECK(done.get_future().wait_for(patience) == std::future_status::ready);
}

TEST_CASE("a handler that is bound to the system's executor does not run where the sockets are", "[outside][edge-26]") {
  auto const settings = renewed_each(1s * slowness);
  server redis;
  client own(redis.uri(), settings);
  client other(redis.uri());
  auto const name = fresh_name();
  auto const held = own.get_lock(name).acquire();
  auto const at_door = std::make_shared<doorway>();
  own.get_lock(fresh_name()).async_is_locked(asio::bind_executor(asio::system_executor(), [at_door](error_code, bool) {
    at_door->pass();
  }));
  REQUIRE(at_door->entered());
  auto const before = own.snapshot().renewals;
  CHECK(wait_until([&] { return own.snapshot().renewals >= before + 2; }));
  CHECK_FALSE(other.get_lock(name).try_lock());
  CHECK(held.held());
  at_door->open();
}

TEST_CASE("async_close is work of its handler's executor", "[outside][edge-5]") {
  server redis;
  client own(redis.uri());
  auto held = own.get_lock(fresh_name()).acquire();
  asio::io_context io;
  std::promise<void> runs;
  asio::post(io, [&] { runs.set_value(); });  // the last thing that it has to do, but for the close
  std::jthread const releases([&] {
    runs.get_future().wait();
    held.release();
  });
  bool closed = false;
  own.async_close(asio::bind_executor(io, [&](error_code) { closed = true; }));
  io.run();
  CHECK(closed);
}
