// What a server costs that lets every connection in and keeps none.
#include <support/catch.hpp>
#include <support/unit/stories.hpp>

using namespace latchkey;
using namespace latchkey::test;
using namespace std::chrono_literals;

namespace {

config quiet_links() { return {.ping_interval = 0ms}; }

// A minute of pauses of at least half of `retry_delay`, and what was in haste before they had grown.
constexpr int steady = 2 * 60 + 20;
// Where each connection is of some use before it ends: once per `retry_delay` at once, else a sixteenth of it or more.
constexpr int of_use = 60 * 16 + 60;

int opened_in_a_minute(world& w) {
  int const before = w.opened;
  w.pass(60s);
  return w.opened - before;
}

}  // namespace

TEST_CASE("sick server: one that accepts and closes") {
  world w(quiet_links());
  w.before_step = [](world& now) { now.lose(role::shared, fate::gone); };
  w.acquire(1, {.wait = 200s});
  task& once = w.once(2);
  CHECK(opened_in_a_minute(w) < steady);
  CHECK(once.error == errc::connect_failed);
  w.before_step = {};
  w.finish();
}

TEST_CASE("sick server: one that completes the handshake and closes, with a waiter and calls that do not wait") {
  world w(quiet_links());
  w.before_step = [](world& now) {
    if (now.snapshot().connected) now.lose(role::shared, fate::gone);
  };
  task& waits = w.acquire(1, {.wait = 200s});
  task& once = w.once(2, {.name = "other"});
  task& asks = w.ask(detail::query::is_locked);
  CHECK(opened_in_a_minute(w) < steady);
  CHECK_FALSE(waits.done());
  CHECK(once.done());
  CHECK(once.error);
  CHECK(once.text == "the server closed the connection");
  CHECK(asks.done());
  CHECK(asks.error);
  w.before_step = {};
  granted(w, waits);
  w.finish();
}

TEST_CASE("sick server: one that completes the handshake and closes under a hold") {
  world w(quiet_links());
  task& a = granted(w, w.acquire(1));
  w.before_step = [](world& now) {
    if (now.snapshot().connected) now.lose(role::shared, fate::gone);
  };
  CHECK(opened_in_a_minute(w) < steady);
  CHECK(a.losses == 1);
  w.before_step = {};
  w.finish();
}

TEST_CASE("sick server: one that answers a request on each connection and closes") {
  world w(quiet_links());
  w.server.stranger_takes("k", stranger, 600'000);
  std::uint64_t told = 0;
  w.before_step = [&](world& now) {
    std::uint64_t const seen = now.server.ran("EVALSHA acquire");
    if (std::exchange(told, seen) != seen) now.lose(role::shared, fate::gone);
  };
  w.acquire(1, {.wait = 200s});
  CHECK(opened_in_a_minute(w) < 2 * of_use);
  w.before_step = {};
  w.server.remove("k");
  w.finish();
}

TEST_CASE("links: a connection that was of use is replaced at once, though each is cut soon") {
  world w(quiet_links());
  granted(w, w.acquire(1));
  w.pass(10s);
  for (int i = 0; i < 30; ++i) {
    w.lose(role::shared, fate::gone);
    instant const cut = w.now;
    task& next = w.await(w.acquire(2, {.name = "other"}));
    CHECK(w.now - cut < 20ms);
    w.release(next);
    w.pass(50ms);
  }
  w.finish();
}

TEST_CASE("sick server: one without messages: it closes on SUBSCRIBE, events say so, and waiters poll") {
  world w(quiet_links());
  w.server.stranger_takes("k", stranger, 600'000);
  w.before_step = [](world& now) {
    if (now.server.ran("SUBSCRIBE") > 0) {
      now.server.log.clear();
      now.lose(role::messages, fate::gone);
    }
  };
  task& a = w.acquire(1);
  int const shared = 1;
  CHECK(opened_in_a_minute(w) < of_use + shared);
  CHECK(w.noted(event_type::disconnected) > 3);
  CHECK(w.snapshot().messages_refused);
  std::size_t tries = 0;
  w.before_step = [&, before = w.before_step](world& now) {
    tries += now.server.ran("EVALSHA acquire");
    before(now);
    now.server.log.clear();
  };
  w.pass(60s);
  CHECK(tries > 50);
  CHECK(tries < 60 * 16);
  w.server.remove("k");  // nobody publishes that
  w.pass(1'100ms);
  CHECK(a.granted());
  w.before_step = {};
  w.finish();
}

TEST_CASE("sick server: message connections that are cut before they are up") {
  world w(quiet_links());
  w.server.stranger_takes("k", stranger, 600'000);
  w.before_step = [](world& now) { now.lose(role::messages, fate::gone); };
  task& a = w.acquire(1);
  CHECK(opened_in_a_minute(w) < steady);
  CHECK(w.noted(event_type::connect_failed) > 3);
  CHECK(w.snapshot().messages_refused);
  w.server.remove("k");
  w.pass(1'100ms);
  CHECK(a.granted());
  w.before_step = {};
  w.finish();
}

TEST_CASE("sick server: messages come again as soon as a connection for them lasts") {
  world w(quiet_links());
  w.server.stranger_takes("k", stranger, 600'000);
  bool sick = true;
  w.before_step = [&](world& now) {
    if (sick) now.lose(role::messages, fate::gone);
  };
  task& a = w.acquire(1);
  w.pass(20s);
  sick = false;
  w.pass(2s);
  CHECK_FALSE(w.snapshot().messages_refused);
  CHECK(w.server.subscriptions() == 1);
  std::size_t const tries = w.server.ran("EVALSHA acquire");
  w.pass(20s);
  CHECK(w.server.ran("EVALSHA acquire") == tries);
  w.server.stranger_releases("k", stranger);
  w.run();
  CHECK(a.granted());
  w.finish();
}

TEST_CASE("sick server: the direct lane is cut whenever somebody has borrowed it") {
  world w(quiet_links());
  w.before_step = [](world& now) {
    if (now.server.ran("EVALSHA") == 0) return;
    now.server.log.clear();
    now.lose(role::direct, fate::ran);
  };
  int const before = w.opened;
  for (instant const end = w.now + 60s; w.now < end;) {
    task& one = w.await(w.acquire(1, {.direct = true}));
    if (one.granted()) w.await(w.release(one, true));
    w.pass(100ms);
  }
  CHECK(w.opened - before < of_use);
  w.before_step = {};
  w.finish();
}

TEST_CASE("sick server: the direct lane is cut before it is up") {
  world w(quiet_links());
  w.before_step = [](world& now) { now.lose(role::direct, fate::gone); };
  granted(w, w.acquire(1, {.direct = true}));
  CHECK(opened_in_a_minute(w) < steady);
  w.before_step = {};
  w.finish();
}

TEST_CASE("reconnect: at once after a healthy life, and after an answer that was of use") {
  world w(quiet_links());
  granted(w, w.acquire(1));
  w.pass(5s);
  for (int i = 0; i < 2; ++i) {
    w.lose(role::shared, fate::gone).run();
    CHECK(w.connected(role::shared));
    w.pass(1s);  // it has lived for `retry_delay`
  }
  w.finish();
}

TEST_CASE("reconnect: the pauses that failures made end with an answer that is of use") {
  world w(quiet_links());
  task& a = w.acquire(1);
  w.unreachable = "no route";
  w.pass(30s);
  w.unreachable = {};
  w.await(a);
  w.lose(role::shared, fate::gone).run();
  CHECK(w.connected(role::shared));
  w.finish();
}

TEST_CASE("sick server: what waits for a KILL without an answer has its attempts") {
  world w(quiet_links());
  task& a = granted(w, w.acquire(1));
  leave_unanswered(w, role::shared, [&] { w.ask(detail::query::is_locked); });
  w.run();
  task& ended = *leave_unread(w, role::shared, [&] { return &w.release(a); });
  w.before_step = [](world& now) {
    if (now.snapshot().connected) now.lose(role::shared, fate::gone);
  };
  instant const began = w.now;
  w.await(ended);
  CHECK(ended.error == errc::connection_lost);
  CHECK(w.now - began < 5s);
  w.before_step = {};
  w.finish();
}

TEST_CASE("sick server: a KILL that is answered BUSY counts for what waits for it, and leaves its words there") {
  world w(quiet_links());
  task& a = granted(w, w.acquire(1));
  task *ended = nullptr, *forced = nullptr, *waits = nullptr;
  w.server.refuse("CLIENT KILL", "BUSY a script is running", -1);
  leave_unread(w, role::shared, [&] {
    ended = &w.release(a);
    forced = &w.force_unlock({.name = "other"});
    waits = &w.acquire(2, {.name = "third", .wait = 20s});
  });
  instant const began = w.now;
  w.await(*ended);
  CHECK(ended->error);
  CHECK(ended->text == "BUSY a script is running");
  w.await(*forced);
  CHECK(forced->error == errc::connection_lost);
  CHECK(forced->text == "BUSY a script is running");
  CHECK(w.now - began < 10s);
  w.await(*waits);
  CHECK(waits->error == errc::timeout);
  CHECK(waits->text == "BUSY a script is running");
  w.server.accept_all();
  w.finish();
}
