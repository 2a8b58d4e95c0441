// What events and counters say of calls, and of those that end without a hold.
#include <outside/outsider.hpp>
#include <support/catch.hpp>
#include <support/configs.hpp>
#include <support/errors.hpp>
#include <support/event_log.hpp>

#include <boost/asio/use_future.hpp>

#include <future>
#include <stop_token>
#include <string>
#include <vector>

using namespace latchkey;
using namespace latchkey::outside;
using namespace std::chrono_literals;

namespace {

namespace asio = boost::asio;

struct watched : two_clients {
  test::event_log log;
  client own{shared_server().uri(), {.local_handoff = {.max_time = 10min, .warm_up = 0}, .on_event = log.callback()}};
  distributed_lock const lock = own.get_lock(name);
  distributed_lock const theirs = second.get_lock(name);

  // Of the events about a lock that carry this context: what they are.
  std::vector<event_type> told(std::uint64_t context) {
    log.catch_up(own);
    std::vector<event_type> types;
    for (auto const& one : log.all())
      if (one.lock == name && one.context == context) types.push_back(one.type);
    return types;
  }
  test::logged_event gave_up() {
    log.catch_up(own);
    return log.last(event_type::gave_up);
  }
};

}  // namespace

TEST_CASE_METHOD(watched, "a busy lock is an event and a count", "[outside][event]") {
  theirs.lock();
  own.connect();
  CHECK_FALSE(lock.acquire({.wait = 200ms, .context = 7}));
  auto const said = gave_up();
  CHECK(said.error == errc::busy);
  CHECK(said.lock == name);
  CHECK(said.kind == "lock");
  CHECK(said.context == 7);
  CHECK(said.took >= 200ms);
  CHECK_FALSE(lock.try_lock());
  auto const counted = own.snapshot();
  CHECK(counted.busy == 2);
  CHECK(counted.timeouts + counted.errors == 0);
  REQUIRE(counted.kinds.size() == 1);
  CHECK(counted.kinds[0].busy == 2);
  CHECK(log.wait_for(event_type::gave_up, 2));
  theirs.unlock();
}

TEST_CASE_METHOD(watched, "a call that was cancelled gave up", "[outside][event]") {
  theirs.lock();
  std::stop_source stop;
  auto waiting = std::async(std::launch::async, [&] { return lock.acquire({.context = 9}, stop.get_token()); });
  REQUIRE(log.wait_for(event_type::waiting));
  stop.request_stop();
  CHECK_FALSE(test::value_of(std::move(waiting)));
  CHECK(gave_up().error == asio::error::operation_aborted);
  CHECK(told(9) == std::vector{event_type::attempt, event_type::waiting, event_type::gave_up});
  auto const counted = own.snapshot();
  CHECK(counted.busy + counted.timeouts + counted.errors == 0);
  theirs.unlock();
}

TEST_CASE_METHOD(watched, "a refused call gave up", "[outside][event]") {
  REQUIRE(shared_server().cli({"SET", name, "text"}) == "OK");
  CHECK(test::error_of([&] { return lock.acquire({.context = 3}); }) == errc::wrong_type);
  CHECK(gave_up().error == errc::wrong_type);
  CHECK(gave_up().context == 3);
  CHECK(gave_up().text.find("WRONGTYPE") != std::string::npos);
  CHECK(own.snapshot().errors == 1);
  CHECK(own.snapshot().kinds[0].errors == 1);
}

TEST_CASE("a call that no answer ended gave up", "[outside][event]") {
  server silent;
  test::event_log log;
  client own(silent.uri(), {.on_event = log.callback()});
  auto const lock = own.get_lock("silent");
  own.connect();
  silent.pause();
  CHECK(test::error_of([&] { return lock.acquire({.wait = 60ms, .context = 5}); }) == errc::timeout);
  log.catch_up(own);
  silent.resume();
  CHECK(log.last(event_type::gave_up).error == errc::timeout);
  CHECK(log.last(event_type::gave_up).context == 5);
  CHECK(own.snapshot().timeouts == 1);
  CHECK(own.snapshot().kinds[0].timeouts == 1);
}

TEST_CASE_METHOD(watched, "a context comes back in every event of the hold", "[outside][event]") {
  lease held = lock.acquire({.context = 11});
  CHECK(held.release() == release_result::released);
  CHECK(told(11) == std::vector{event_type::attempt, event_type::granted, event_type::released});
  { lease const dropped = lock.acquire({.context = 12}); }
  REQUIRE(log.wait_for(event_type::released, 2));
  CHECK(told(12).back() == event_type::released);

  lease lost = lock.acquire({.context = 13});
  CHECK(theirs.force_unlock());
  CHECK_FALSE(lost.extend(1min));
  CHECK(told(13) == std::vector{event_type::attempt, event_type::granted, event_type::lost});

  lease bounded = lock.acquire({.max_hold = test::brief_lease, .context = 14});
  REQUIRE(log.wait_for(event_type::lost, 2));
  CHECK(told(14) ==
        std::vector{event_type::attempt, event_type::granted, event_type::max_hold_reached, event_type::lost});
}

TEST_CASE_METHOD(watched, "the members of a joined lock and permits carry the context, too", "[outside][event]") {
  auto const joined = own.get_multi_lock({lock, own.get_lock(fresh_name())});
  CHECK(joined.acquire({.context = 21}).release() == release_result::released);
  CHECK(told(21) == std::vector{event_type::attempt, event_type::granted, event_type::released});
  auto const pool = own.get_permit_semaphore(fresh_name());
  CHECK_FALSE(pool.acquire_permit({.wait = 0ms, .context = 22}));
  CHECK(gave_up().context == 22);
  CHECK(gave_up().error == errc::busy);
  pool.set_permits(1);
  CHECK(test::value_of(pool.async_acquire_permit({.context = 23}, asio::use_future)).held());
  log.catch_up(own);
  CHECK(log.last(event_type::granted).context == 23);
}

TEST_CASE_METHOD(watched, "a hand-off says for which call it is", "[outside][event]") {
  lease first = lock.acquire({.context = 31});
  auto next = lock.async_acquire({.context = 32}, asio::use_future);
  CHECK(first.release() == release_result::released);
  CHECK(test::value_of(std::move(next)).held());
  log.catch_up(own);
  CHECK(log.last(event_type::handed_off).context == 32);
  CHECK(told(31).back() == event_type::released);
}
