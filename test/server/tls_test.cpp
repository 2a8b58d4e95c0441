// Case 72: TLS between client and server.
#include <latchkey/latchkey.hpp>
#include <support/catch.hpp>
#include <support/child_process.hpp>
#include <support/errors.hpp>
#include <support/kinds.hpp>
#include <support/tls_server.hpp>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>

#include <future>
#include <stop_token>
#include <string>
#include <thread>

using namespace latchkey;
using namespace latchkey::test;

namespace {

// A client by TLS of a server that others use, too.
struct tls_world {
  tls_server& server = shared_tls_server();
  raw_redis& admin = server.admin;
  event_log log;
  client own{server.uri(), with_tls(steady_config(log))};
  std::string name = new_name();
  distributed_lock lock = own.get_lock(name);
};

}  // namespace

TEST_CASE("case 72: a lock over TLS, taken again and waited for", "[server][case-72]") {
  tls_world w;
  w.lock.lock();
  CHECK(w.admin.hash(w.name).size() == 1);
  CHECK(w.lock.try_lock());
  client other(w.server.uri("localhost"), with_tls(steady_config()));
  auto waiting = other.get_lock(w.name).async_acquire(asio::use_future);
  REQUIRE(wait_until([&] { return w.admin.listeners(w.name) == 1; }));
  w.lock.unlock();
  w.lock.unlock();
  // By a message: the lease that it has read ends in 30 s.
  CHECK(value_of(std::move(waiting)).held());
}

TEST_CASE("case 72: every kind of lock over TLS is passed from one client to another", "[server][case-72]") {
  tls_world w;
  client other(w.server.uri(), with_tls(steady_config()));
  for (auto const& kind : lock_kinds()) {
    INFO(kind.name);
    auto const name = new_name();
    lease held = kind.of(w.own, name).acquire({.wait = patience});
    REQUIRE(held.held());
    auto waiting = kind.of(other, name).async_acquire({.wait = patience}, asio::use_future);
    CHECK(held.release() == release_result::released);
    CHECK(value_of(std::move(waiting), 2 * patience).held());
  }
}

TEST_CASE("case 72: a blocking caller speaks TLS itself, though nobody runs the client's executor",
          "[server][case-72]") {
  auto& server = shared_tls_server();
  asio::io_context io;
  client own(io, server.uri(), with_tls(steady_config()));
  auto const lock = own.get_lock(new_name());
  {
    auto const work = asio::make_work_guard(io);  // it may run before there is anything to do
    std::jthread runner([&](std::stop_token stop) {
      std::stop_callback const at_its_end(stop, [&] { io.stop(); });
      io.run();
    });
    own.connect();
    for (int i = 0; i < 3; ++i) CHECK(lock.acquire().release() == release_result::released);
  }
  for (int i = 0; i < 100; ++i) {
    REQUIRE(lock.try_lock(patience));
    REQUIRE(server.admin.integer("EXISTS", lock.name()) == 1);
    lock.unlock();
  }
  CHECK(own.snapshot().reconnects == 0);
  io.restart();
  auto closed = own.async_close(asio::use_future);
  io.run();
  closed.get();
}

TEST_CASE("case 72: idle lanes by TLS are checked, and serve on", "[server][case-72]") {
  event_log log;
  auto settings = with_tls(steady_config(log));
  settings.ping_interval = 50ms;
  tls_server server;
  client own(server.uri(), settings);
  auto const lock = own.get_lock("lock");
  for (int i = 0; i < 3; ++i) CHECK(lock.acquire().release() == release_result::released);
  auto const before = server.admin.calls("ping");
  REQUIRE(wait_until([&] { return server.admin.calls("ping") >= before + 10; }));
  CHECK(lock.acquire().release() == release_result::released);
  CHECK(own.snapshot().reconnects == 0);
  CHECK(log.count_after(own, event_type::disconnected) == 0);
}

TEST_CASE("case 72: what does not fit a record of TLS arrives, on both lanes", "[server][case-72]") {
  tls_world w;
  auto const name = std::string(60'000, 'x') + new_name();
  auto const lock = w.own.get_lock(name);
  auto const me = owner::make();
  for (int i = 0; i < 3; ++i) {
    CHECK(lock.acquire().release() == release_result::released);
    lock.async_lock(me, asio::use_future).get();
    CHECK(w.admin.hash(name).size() == 1);
    lock.async_unlock(me, asio::use_future).get();
  }
  CHECK(w.own.snapshot().reconnects == 0);
}

TEST_CASE("case 72: connections by TLS that end without a goodbye are made again", "[server][case-72]") {
  tls_world w;
  for (int i = 0; i < 3; ++i) {
    lease held = w.lock.acquire({.wait = patience});
    REQUIRE(held.held());
    w.admin.kill_clients("laddr=127.0.0.1:" + std::to_string(w.server.port));
    CHECK(held.release() == release_result::released);
  }
  CHECK(w.own.snapshot().reconnects >= 1);
}

TEST_CASE("case 72: a user with a password, by TLS with a certificate of its own", "[server][case-72]") {
  tls_server server("server", true, {"--user", "app", "on", ">app-secret", "~*", "&*", "+@all"});
  auto const where = "127.0.0.1:" + std::to_string(server.port);
  client own("rediss://app:app-secret@" + where + "/3", with_tls(steady_config(), "client"));
  own.get_lock("lock").lock();
  CHECK(server.admin.ok("INFO", "keyspace").text.find("db3:keys=1") != std::string::npos);
  client wrong("rediss://app:wrong@" + where, with_tls(steady_config(), "client"));
  CHECK(error_of([&] { wrong.connect(patience); }) == errc::auth_failed);
}

TEST_CASE("case 72: in the child of a fork a client by TLS is closed, and the parent's goes on",
          "[server][case-72][case-t55]") {
  tls_world w;
  auto own = std::make_unique<client>(w.server.uri(), with_tls(steady_config()));
  auto const lock = own->get_lock(w.name);
  for (int i = 0; i < 3; ++i) CHECK(lock.acquire().release() == release_result::released);
  std::optional<lease> held = lock.acquire();
  child_process child([&](child_process::channel&) {
    int wrong = error_of([&] { lock.lock(); }) != errc::closed;
    wrong += error_of([&] { own->reload_tls(); }) != errc::closed;
    held.reset();
    own.reset();
    return wrong;
  });
  CHECK(child.wait() == 0);
  CHECK(held->held());
  CHECK(held->release() == release_result::released);
  for (int i = 0; i < 3; ++i) CHECK(lock.acquire().release() == release_result::released);
  CHECK(own->snapshot().reconnects == 0);
}

TEST_CASE("case 72: a client by TLS closes at once, and beside a stopped server in time", "[server][case-72]") {
  tls_server server;
  auto const port = "laddr=127.0.0.1:" + std::to_string(server.port);
  auto settings = with_tls(steady_config());
  settings.close_timeout = 1s + 500ms * slowness;
  client own(server.uri(), settings);
  for (int i = 0; i < 3; ++i) CHECK(own.get_lock("lock").acquire().release() == release_result::released);
  stopwatch orderly;
  own.close();
  CHECK(orderly.passed() < settings.close_timeout / 2);
  CHECK(wait_until([&] { return server.admin.clients(port) == 0; }));

  client beside(server.uri(), settings);
  beside.get_lock("lock").lock();
  server.server.pause();
  stopwatch paused;
  beside.close();
  CHECK(paused.passed() < settings.close_timeout + 1s * slowness);
  server.server.resume();
}
