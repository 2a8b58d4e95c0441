// Cases 79 to 91: processes that fork, stop, starve, end.
#include <latchkey/latchkey.hpp>
#include <support/catch.hpp>
#include <support/child_process.hpp>
#include <support/errors.hpp>
#include <support/run_coro.hpp>
#include <support/wall_clock.hpp>
#include <support/worlds.hpp>

#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <future>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

using namespace latchkey;
using namespace latchkey::test;

TEST_CASE("case 79: in the child of a fork the client is closed, and the parent's holds and waiters live on",
          "[server][case-79]") {
  common_world w;
  auto own = std::make_unique<client>(common_server().uri(), steady_config());
  auto const lock = own->get_lock(w.name);
  auto const busy = own->get_lock(new_name());
  w.own.get_lock(busy.name()).lock();
  lock.lock();
  std::optional<lease> held = own->get_lock(new_name()).acquire();
  auto const tries = w.admin.calls("evalsha");
  auto waiting = busy.async_acquire(asio::use_future);
  // One try, and one after the subscription. Then the client's thread is idle: the runtime of ThreadSanitizer has
  // mutexes of its own, and a child that inherits a locked one waits for ever.
  REQUIRE(wait_until([&] { return w.admin.calls("evalsha") >= tries + 2; }));
  REQUIRE(own->snapshot().waiting == 1);
  auto const connections = w.admin.clients();
  auto const commands = w.admin.calls("evalsha");

  child_process child([&](child_process::channel&) {
    int wrong = 0;
    auto const closed = [&](auto call) { wrong += error_of(call) != errc::closed; };
    closed([&] { lock.lock(); });
    closed([&] { return lock.try_lock(); });
    closed([&] { lock.unlock(); });
    closed([&] { return lock.is_locked(); });
    closed([&] { return lock.force_unlock(); });
    closed([&] { return busy.acquire(); });
    closed([&] { return held->extend(1s); });
    wrong += held->held();
    held.reset();
    own->close();
    own.reset();
    return wrong;
  });
  CHECK(child.wait() == 0);
  CHECK(lock.is_held_by_current_thread());
  CHECK(held->held());
  CHECK(own->get_lock(new_name()).try_lock());
  // The parent's try_lock, and a renewal or two.
  CHECK(w.admin.calls("evalsha") <= commands + 3);
  CHECK(w.admin.clients() >= connections);
  w.own.get_lock(busy.name()).unlock();
  CHECK(value_of(std::move(waiting)).held());
  CHECK(held->release() == release_result::released);
  lock.unlock();
}

TEST_CASE("case 79: a client made after the fork works in the child", "[server][case-79]") {
  auto const uri = common_server().uri();
  auto const name = new_name();
  child_process child([&](child_process::channel&) {
    client own(uri, steady_config());
    lease held = own.get_lock(name).acquire();
    return held.held() && held.release() == release_result::released ? 0 : 1;
  });
  CHECK(child.wait() == 0);
}

TEST_CASE("case 79: what a client has closed is closed, also while a child of the process lives", "[server][case-79]") {
  private_world w;
  auto own = std::make_unique<client>(w.server.uri(), steady_config());
  w.lock.lock();
  REQUIRE(own->get_lock(new_name()).try_lock());
  auto const tries = w.admin.calls("evalsha");
  auto waiting = own->get_lock(w.name).async_acquire(asio::use_future);
  REQUIRE(wait_until([&] { return w.admin.calls("evalsha") >= tries + 2; }));  // it listens, and its thread is idle
  REQUIRE(own->snapshot().waiting == 1);
  auto const others = w.admin.clients();
  child_process child([](child_process::channel& parent) {
    parent.hear();
    return 0;
  });
  own->close();
  CHECK(error_in(std::move(waiting)) == errc::closed);
  own.reset();
  CHECK(wait_until([&] { return w.admin.clients() <= others - 3; }));
  child.talk().say("done");
  CHECK(child.wait() == 0);
}

TEST_CASE("case 83: after a pause of the executor a lease is over at once, and the loss is told first",
          "[server][case-83]") {
  asio::io_context io;
  client own(io, common_server().uri(), quick_config());
  auto const lock = own.get_lock(new_name());
  lease held = run_coro(io, lock.async_acquire(asio::use_awaitable));
  std::vector<std::string> order;
  held.on_lost([&] { order.push_back("lost"); });
  CHECK(held.held());
  // Nobody runs the context until the lease is over.
  CHECK(wait_until([&] { return !held.held(); }));
  CHECK(held.remaining() == 0ms);
  lock.async_is_locked([&](error_code, bool) { order.push_back("answer"); });
  CHECK(run_until(io, [&] { return order.size() == 2; }));
  CHECK(order == std::vector<std::string>{"lost", "answer"});
  CHECK_FALSE(held.held());
}

TEST_CASE("case 84: while the executor starves the lease ends, and no late renewal brings it back",
          "[server][case-84]") {
  asio::io_context io;
  event_log log;
  client own(io, common_server().uri(), quick_config(log));
  auto const lock = own.get_lock(new_name());
  lease held = run_coro(io, lock.async_acquire(asio::use_awaitable));
  bool starved = false;
  asio::post(io, [&] {
    // Three leases long nothing else runs here.
    auto const end = clock::now() + 3 * quick_config().lock_watchdog_timeout;
    while (clock::now() < end) std::this_thread::yield();
    starved = !held.held();
  });
  CHECK(run_until(io, [&] { return log.count(event_type::lost) == 1; }));
  CHECK(starved);
  auto const answer = run_coro(io, lock.async_is_locked(asio::use_awaitable));
  static_cast<void>(answer);
  CHECK_FALSE(held.held());
  CHECK(held.remaining() == 0ms);
  CHECK(run_coro(io, held.async_release(asio::use_awaitable)) == release_result::expired);
}

TEST_CASE("case 85: a process that was stopped for longer than its lease knows that it lost it", "[server][case-85]") {
  auto const uri = common_server().uri();
  auto const name = new_name();
  child_process holder([&](child_process::channel& up) {
    client own(uri, quick_config());
    lease held = own.get_lock(name).acquire();
    up.say(held.held() ? "held" : "not held");
    up.hear();
    // The first look after the stop must not be fooled.
    up.say(held.held() ? "held" : "lost");
    // If an answer was still out when it was stopped, nobody can tell, and it says so.
    up.say(held.release() == release_result::released ? "released" : "expired");
    return 0;
  });
  REQUIRE(holder.talk().hear() == "held");
  holder.send_signal(SIGSTOP);
  common_world w;
  auto const lock = w.own.get_lock(name);
  lock.lock();
  auto const before = w.admin.hash(name);
  holder.talk().say("look");
  holder.send_signal(SIGCONT);
  CHECK(holder.talk().hear() == "lost");
  CHECK(holder.talk().hear() == "expired");
  CHECK(holder.wait() == 0);
  CHECK(w.admin.hash(name) == before);
  lock.unlock();
}

// UndefinedBehaviorSanitizer needs a descriptor to look at a virtual table, and takes it for broken without one.
#if !defined(__SANITIZE_ADDRESS__)
TEST_CASE("case 87: without free descriptors there is no new connection, and what is there works on",
          "[server][case-87]") {
  common_world w;
  w.lock.lock();
  auto settings = steady_config();
  settings.retry_attempts = 1;
  settings.client_name = "without-descriptors";
  client late(common_server().uri(), settings);
  CHECK(late.get_lock(new_name()).try_lock());
  rlimit old{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &old) == 0);
  rlimit const none{3, old.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
  w.admin.kill_clients("name=without-descriptors");
  auto const error = error_of([&] { return late.get_lock(new_name()).try_lock(); });
  bool const still_works = w.lock.is_held_by_current_thread() && w.lock.try_lock();
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &old) == 0);
  // The end of the old connection may come behind the request.
  CHECK((error == errc::connect_failed || error == errc::timeout || error == errc::connection_lost));
  CHECK(still_works);
  CHECK(late.get_lock(new_name()).try_lock(patience));
  w.lock.unlock();
  w.lock.unlock();
}

TEST_CASE("case 87: a client that finds no descriptor at its first use works when there are some again",
          "[server][case-87]") {
  auto settings = steady_config();
  settings.connect_timeout = 200ms;
  settings.timeout = 200ms;
  settings.retry_attempts = 0;
  event_log log;
  settings.on_event = log.callback();
  client late(common_server().uri(), settings);
  rlimit old{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &old) == 0);
  rlimit const none{3, old.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
  auto const error = error_of([&] { return late.get_lock(new_name()).try_lock(); });
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &old) == 0);
  CHECK(error == errc::connect_failed);
  CHECK(log.wait_for(event_type::connect_failed));
  CHECK(late.get_lock(new_name()).try_lock(patience));
}

TEST_CASE("case 87: who would wait for ever is told that a client without a descriptor cannot connect",
          "[server][case-87]") {
  client late(common_server().uri(), steady_config());
  rlimit old{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &old) == 0);
  rlimit const none{3, old.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
  auto waiting = late.get_lock(new_name()).async_acquire(asio::use_future);
  bool const told = waiting.wait_for(patience) == std::future_status::ready;
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &old) == 0);
  REQUIRE(told);
  CHECK(error_in(std::move(waiting)) == errc::connect_failed);
}

TEST_CASE("case 87: a client without a descriptor left can still wait for a lock of other clients' members",
          "[server][case-87]") {
  common_world w;
  auto const other = w.own.get_lock(new_name());
  auto const holder = owner::make();
  for (auto const& one : {w.lock, other}) one.async_lock(holder, asio::use_future).get();
  client late(common_server().uri(), steady_config());
  auto const lock = late.get_red_lock({w.lock, other});
  rlimit old{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &old) == 0);
  rlimit const none{3, old.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
  std::string problem;
  bool in_vain = false;
  try {
    in_vain = waits_in_vain([&] { return lock.try_lock(300ms); });
  } catch (std::exception const& one) {
    problem = one.what();
  }
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &old) == 0);
  CHECK(problem == "");
  CHECK(in_vain);
  for (auto const& one : {w.lock, other}) one.async_unlock(holder, asio::use_future).get();
  CHECK(lock.try_lock(patience));
}

#endif

// A sanitizer has a clock_gettime of its own.
#ifndef LATCHKEY_TEST_SANITIZED
TEST_CASE("case 88: steps of the wall clock change neither leases nor waits", "[server][case-88]") {
  common_world w;
  client other(common_server().uri(), steady_config());
  for (auto const step : {std::chrono::seconds(100'000), std::chrono::seconds(-100'000)}) {
    auto const wall = std::chrono::system_clock::now();
    lease held = w.lock.acquire({.lease = 20s});
    auto waiter = std::async(std::launch::async, [&] { return other.get_lock(w.name).try_lock(patience); });
    REQUIRE(wait_until([&] { return other.snapshot().waiting == 1; }));
    shift_wall_clock(step);
    CHECK(std::chrono::abs(std::chrono::system_clock::now() - wall) > std::chrono::hours(1));
    CHECK(held.held());
    CHECK(held.remaining() > 1s);
    CHECK(held.remaining() <= 20s);
    CHECK(other.snapshot().waiting == 1);
    CHECK_FALSE(w.lock.try_lock(brief_wait));
    CHECK(held.release() == release_result::released);
    CHECK(value_of(std::move(waiter)));
    CHECK(w.lock.force_unlock());
    shift_wall_clock(0s);
  }
}
#endif

TEST_CASE("case 91: writing to connections that the server has closed kills nobody", "[server][case-91]") {
  struct sigaction action {};
  REQUIRE(::sigaction(SIGPIPE, nullptr, &action) == 0);
  REQUIRE(action.sa_handler == SIG_DFL);
  private_world w;
  for (int i = 0; i < 50; ++i) {
    w.lock.lock();
    w.admin.kill_clients();
    w.lock.unlock();
  }
  CHECK(w.admin.integer("EXISTS", w.name) == 0);
  CHECK(w.own.snapshot().reconnects > 0);
}

TEST_CASE("case 91: exit() in another thread with a client of static storage ends the process in order",
          "[server][case-91]") {
  auto const uri = common_server().uri();
  auto const name = new_name();
  child_process child([&](child_process::channel& up) {
    static client own(uri, steady_config());
    static lease held = own.get_lock(name).acquire();
    up.say(held.held() ? "held" : "not held");
    // Catch2's XML reporter has lent them buffers of a frame that exit() does not leave.
    for (std::ostream* const one : {&std::cout, &std::cerr, &std::clog}) one->rdbuf(nullptr);
    std::thread([] { std::exit(7); }).join();
    return 1;
  });
  CHECK(child.talk().hear() == "held");
  CHECK(child.wait() == 7);
  auto admin = common_server().admin();
  CHECK(wait_until([&] { return admin.integer("EXISTS", name) == 0; }));
}

TEST_CASE("case 91: _exit in the middle leaves a hold that its lease ends", "[server][case-91]") {
  auto const uri = common_server().uri();
  auto const name = new_name();
  child_process child([&](child_process::channel&) {
    client own(uri, quick_config());
    own.get_lock(name).lock();
    ::_exit(3);
    return 1;
  });
  CHECK(child.wait() == 3);
  common_world w;
  CHECK(w.own.get_lock(name).try_lock(patience));
}
