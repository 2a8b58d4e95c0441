// The blocking members of distributed_lock, each on a lock of its own.
#include <latchkey/latchkey.hpp>
#include <support/catch.hpp>
#include <support/errors.hpp>
#include <support/run_coro.hpp>
#include <support/worlds.hpp>

#include <boost/asio/bind_executor.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_future.hpp>

#include <future>
#include <thread>
#include <vector>

using namespace latchkey;
using namespace latchkey::test;

TEST_CASE("a lock shows as a hash with the field uuid:owner and the count", "[server][contract]") {
  common_world w;
  w.lock.lock();
  CHECK(w.admin.hash(w.name) == fields{{w.field(owner::this_thread()), "1"}});
  auto const ttl = w.admin.integer("PTTL", w.name);
  CHECK(ttl > 20'000);
  CHECK(ttl <= 30'000);
  w.lock.unlock();
  CHECK(w.admin.integer("EXISTS", w.name) == 0);
}

TEST_CASE("a thread that holds the lock takes it again at once and must give it back as often", "[server][contract]") {
  common_world w;
  w.lock.lock();
  CHECK(w.lock.try_lock());
  CHECK(w.lock.try_lock(1s));
  CHECK(w.lock.hold_count() == 3);
  CHECK(w.admin.hash(w.name) == fields{{w.field(owner::this_thread()), "3"}});
  w.lock.unlock();
  w.lock.unlock();
  CHECK(w.lock.hold_count() == 1);
  CHECK(w.lock.is_held_by_current_thread());
  w.lock.unlock();
  CHECK_FALSE(w.lock.is_locked());
}

TEST_CASE("a lock with a lease is not renewed and ends by itself", "[server][contract]") {
  event_log log;
  client own(common_server().uri(), quick_config(log));
  auto const lock = own.get_lock(new_name());
  lock.lock(900ms);
  CHECK(lock.remaining_time_to_live().value() <= 900ms);
  CHECK(log.wait_for(event_type::lost, lock.name()));
  CHECK(wait_until([&] { return !lock.is_locked(); }));
  CHECK(error_of([&] { lock.unlock(); }) == errc::lease_lost);
}

TEST_CASE("the watchdog keeps a lock without a lease for longer than its time", "[server][contract]") {
  event_log log;
  auto settings = quick_config(log);
  settings.lock_watchdog_timeout = 2s * slowness;
  client own(common_server().uri(), settings);
  auto const lock = own.get_lock(new_name());
  stopwatch since;
  lock.lock();
  REQUIRE(wait_until([&] { return own.snapshot().renewals >= 4; }));
  CHECK(since.passed() > settings.lock_watchdog_timeout);
  CHECK(lock.is_held_by_current_thread());
  CHECK(lock.remaining_time_to_live().value() <= settings.lock_watchdog_timeout);
  lock.unlock();
  CHECK(log.count_after(own, event_type::lost) == 0);
}

TEST_CASE("try_lock of a busy lock says false and changes nothing", "[server][contract]") {
  common_world w;
  client other(common_server().uri(), steady_config());
  REQUIRE(other.get_lock(w.name).try_lock());
  auto const before = w.admin.hash(w.name);
  CHECK_FALSE(w.lock.try_lock());
  CHECK_FALSE(w.lock.try_lock(brief_wait));
  CHECK_FALSE(w.lock.try_lock(brief_wait, 5s));
  CHECK(w.admin.hash(w.name) == before);
  CHECK(w.own.snapshot().waiting == 0);
  other.get_lock(w.name).unlock();
}

TEST_CASE("try_lock with a wait gets the lock when it is released", "[server][contract]") {
  common_world w;
  client other(common_server().uri(), steady_config());
  auto const theirs = other.get_lock(w.name);
  theirs.lock();
  auto waiter = std::async(std::launch::async, [&] {
    bool const held = w.lock.try_lock(patience);
    if (held) w.lock.unlock();
    return held;
  });
  REQUIRE(w.log.wait_for(event_type::waiting, w.name));
  theirs.unlock();
  CHECK(waiter.get());
}

TEST_CASE("try_lock with a wait and a lease takes the lease", "[server][contract]") {
  common_world w;
  REQUIRE(w.lock.try_lock(1s, 7s));
  auto const ttl = w.admin.integer("PTTL", w.name);
  CHECK(ttl > 1'000);
  CHECK(ttl <= 7'000);
  w.lock.unlock();
}

TEST_CASE("try_lock_for and try_lock_until take any duration and any clock", "[server][contract]") {
  common_world w;
  client other(common_server().uri(), steady_config());
  auto const theirs = other.get_lock(w.name);
  theirs.lock();
  // Long enough for the server to say that it is taken: a wait that ends unanswered is an error.
  CHECK_FALSE(w.lock.try_lock_for(100'000us * slowness));
  CHECK_FALSE(w.lock.try_lock_for(std::chrono::duration<double>(0.1 * slowness)));
  CHECK_FALSE(w.lock.try_lock_until(std::chrono::steady_clock::now() + 100ms * slowness));
  CHECK_FALSE(w.lock.try_lock_until(std::chrono::system_clock::now() - 20ms));
  theirs.unlock();
  CHECK(w.lock.try_lock_for(10s));
  CHECK(w.lock.try_lock_until(std::chrono::system_clock::now() + 10s));
  w.lock.unlock();
  w.lock.unlock();
}

TEST_CASE("lock waits until the holder is gone", "[server][contract]") {
  common_world w;
  w.lock.lock();
  auto waiter = std::async(std::launch::async, [&] {
    w.lock.lock();
    w.lock.unlock();
  });
  REQUIRE(w.log.wait_for(event_type::waiting, w.name));
  CHECK(w.own.snapshot().waiting == 1);
  w.lock.unlock();
  CHECK(waiter.wait_for(patience) == std::future_status::ready);
}

TEST_CASE("force_unlock removes any holder, wakes the waiters, and says whether there was one", "[server][contract]") {
  common_world w;
  client other(common_server().uri(), steady_config());
  CHECK_FALSE(w.lock.force_unlock());
  other.get_lock(w.name).lock();
  auto waiter = std::async(std::launch::async, [&] {
    w.lock.lock();
    w.lock.unlock();
  });
  REQUIRE(w.log.wait_for(event_type::waiting, w.name));
  REQUIRE(wait_until([&] { return w.admin.listeners(w.name) == 1; }));
  CHECK(other.get_lock(w.name).force_unlock());
  CHECK(waiter.wait_for(patience) == std::future_status::ready);
}

TEST_CASE("the questions tell who holds the lock, how often and for how long", "[server][contract]") {
  common_world w;
  auto const me = owner::this_thread();
  auto const somebody = owner::make();
  CHECK_FALSE(w.lock.is_locked());
  CHECK_FALSE(w.lock.is_held_by_current_thread());
  CHECK_FALSE(w.lock.is_held_by(me));
  CHECK(w.lock.hold_count() == 0);
  CHECK(w.lock.hold_count(somebody) == 0);
  CHECK(w.lock.remaining_time_to_live() == std::nullopt);
  w.lock.lock();
  CHECK(w.lock.is_locked());
  CHECK(w.lock.is_held_by_current_thread());
  CHECK(w.lock.is_held_by(me));
  CHECK_FALSE(w.lock.is_held_by(somebody));
  CHECK(w.lock.hold_count() == 1);
  CHECK(w.lock.hold_count(me) == 1);
  CHECK(w.lock.hold_count(somebody) == 0);
  CHECK(w.lock.remaining_time_to_live().value() > 20s);
  CHECK(w.lock.name() == w.name);
  CHECK_FALSE(std::async(std::launch::async, [&] { return w.lock.is_held_by_current_thread(); }).get());
  w.lock.unlock();
  w.admin.ok("HSET", w.name, "somebody:1", 1);
  CHECK(w.lock.remaining_time_to_live() == milliseconds::max());
  CHECK(w.lock.force_unlock());
}

TEST_CASE("handles of one client and name are equal, others are not", "[server][contract]") {
  common_world w;
  client other(common_server().uri());
  distributed_lock const copy = w.lock;
  CHECK(copy == w.lock);
  CHECK(w.own.get_lock(w.name) == w.lock);
  CHECK(w.own.get_lock(w.name + "x") != w.lock);
  CHECK(other.get_lock(w.name) != w.lock);
  w.lock.lock();
  CHECK(copy.is_held_by_current_thread());
  copy.unlock();
}

TEST_CASE("a lock with braces in its name publishes to Redisson's channel for it", "[server][contract]") {
  common_world w;
  auto const name = "{" + w.name + "}:part";
  auto const lock = w.own.get_lock(name);
  auto listener = common_server().admin();
  listener.send({"SUBSCRIBE", "redisson_lock__channel:" + name});
  listener.receive();
  lock.lock();
  lock.unlock();
  auto const message = listener.receive();
  REQUIRE(message.elements.size() == 3);
  CHECK(message.elements[2].text == "0");
}

TEST_CASE("a release never leaves a lock without a time to live, also if another hold ran out unnoticed",
          "[server][contract]") {
  common_world w;
  asio::io_context io;
  client own(io, common_server().uri(), steady_config());
  auto const lock = own.get_lock(w.name);
  auto const work = asio::make_work_guard(io);
  std::thread runner([&] { io.run(); });
  // Soon a blocking caller does its own I/O.
  for (int i = 0; i < 50; ++i) {
    lock.lock();
    lock.unlock();
    std::this_thread::sleep_for(1ms);
  }
  io.stop();
  runner.join();
  REQUIRE(lock.try_lock(patience, brief_lease));
  REQUIRE(lock.try_lock(patience));
  std::this_thread::sleep_for(brief_lease + 10ms);
  lock.unlock();
  CHECK(wait_until([&] { return w.admin.integer("PTTL", w.name) == -2; }));
  CHECK(w.admin.integer("EXISTS", w.name) == 0);
}

// Blocking calls on a thread that serves the client are refused at once, instead of waiting for themselves.

namespace {

// The answers of all blocking members.
std::vector<error_code> ask_all(distributed_lock const& lock, lease& held) {
  return {error_of([&] { lock.lock(); }),
          error_of([&] { lock.lock(5s); }),
          error_of([&] { return lock.try_lock(); }),
          error_of([&] { return lock.try_lock(1s, 5s); }),
          error_of([&] { return lock.acquire(); }),
          error_of([&] { lock.unlock(); }),
          error_of([&] { return lock.force_unlock(); }),
          error_of([&] { return lock.is_locked(); }),
          error_of([&] { return lock.is_held_by_current_thread(); }),
          error_of([&] { return lock.hold_count(); }),
          error_of([&] { return lock.remaining_time_to_live(); }),
          error_of([&] { return held.extend(5s); }),
          error_of([&] { return held.release(); })};
}

void check_refused(std::vector<error_code> const& answers) {
  for (auto const& answer : answers) CHECK(answer == errc::would_deadlock);
}

template <class Executor>
std::vector<error_code> ask_on(Executor const& executor, client const& own) {
  auto const lock = own.get_lock(new_name());
  lease held = lock.async_acquire(asio::use_future).get();
  std::promise<std::vector<error_code>> answers;
  asio::post(executor, [&] { answers.set_value(ask_all(lock, held)); });
  return answers.get_future().get();
}

}  // namespace

TEST_CASE("blocking calls on the client's io_context would deadlock, on however many threads", "[server][contract]") {
  for (int threads : {1, 3}) {
    running_context context(threads);
    client own(context.get(), common_server().uri(), steady_config());
    check_refused(ask_on(context.get().get_executor(), own));
    own.close();
  }
}

TEST_CASE("blocking calls on the client's thread pool or strand would deadlock", "[server][contract]") {
  asio::thread_pool pool(2);
  client on_pool(pool, common_server().uri(), steady_config());
  check_refused(ask_on(pool.get_executor(), on_pool));
  auto const strand = asio::make_strand(pool);
  client on_strand(asio::any_io_executor(strand), common_server().uri(), steady_config());
  check_refused(ask_on(strand, on_strand));
  on_pool.close();
  on_strand.close();
}

TEST_CASE("blocking calls in a handler on the client's own thread would deadlock", "[server][contract]") {
  common_world w;
  lease held = w.lock.acquire();
  std::promise<std::vector<error_code>> answers;
  w.lock.async_is_locked([&](error_code, bool) { answers.set_value(ask_all(w.lock, held)); });
  check_refused(value_of(answers.get_future()));
}

TEST_CASE("blocking calls in on_lost would deadlock", "[server][contract]") {
  common_world w;
  auto const busy = w.own.get_lock(new_name());
  lease held = busy.acquire();
  lease brief = w.lock.acquire({.lease = brief_lease});
  std::promise<std::vector<error_code>> answers;
  brief.on_lost([&] { answers.set_value(ask_all(w.lock, held)); });
  check_refused(value_of(answers.get_future()));
}

TEST_CASE("a refused release goes on in the background", "[server][contract]") {
  common_world w;
  lease held = w.lock.acquire();
  std::promise<error_code> answer;
  w.lock.async_is_locked([&](error_code, bool) { answer.set_value(error_of([&] { return held.release(); })); });
  CHECK(answer.get_future().get() == errc::would_deadlock);
  CHECK(wait_until([&] { return !w.lock.is_locked(); }));
}

TEST_CASE("blocking calls of one client in a handler of another are fine", "[server][contract]") {
  common_world w;
  client other(common_server().uri(), steady_config());
  std::promise<bool> answer;
  w.lock.async_is_locked([&](error_code, bool) { answer.set_value(other.get_lock(new_name()).try_lock()); });
  CHECK(value_of(answer.get_future()));
}
