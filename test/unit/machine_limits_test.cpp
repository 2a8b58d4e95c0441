#include <support/catch.hpp>
#include <support/unit/stories.hpp>

#include <string>

using namespace latchkey;
using namespace latchkey::test;
using namespace std::chrono_literals;

// How long a call takes that has a wait, and with what it ends, whatever the server does.

namespace {

constexpr milliseconds least = detail::first_try_time;

// A client that has its connections, the direct lane too.
void warm_lane(world& w) {
  for (int i = 0; i < 2; ++i) warm_up(w, true);
}

// It is gone, and so is every connection.
void lose_server(world& w) {
  w.unreachable = "Connection refused";
  for (role const as : {role::shared, role::messages, role::direct})
    if (w.connected(as)) w.lose(as, fate::gone);
}

// It stands still, and so does whoever connects.
void stop_server(world& w) {
  w.nobody_answers = true;
  for (role const as : {role::shared, role::messages, role::direct})
    if (w.connected(as)) w.lose(as, fate::silent);
}

// Passes time until the call has ended; answers how long that took.
milliseconds ends_after(world& w, task& one) {
  instant const began = w.now;
  while (!one.done() && w.now - began < 1min)
    if (!w.step()) w.pass(1ms);
  w.expect(one.done(), "the call never ended");
  return std::chrono::ceil<milliseconds>(one.done_at - began);
}

// A wait is kept, and a shorter one than a round trip may need is as long as that.
void check_bound(world& w, task& one, milliseconds wait) {
  auto const took = ends_after(w, one);
  CHECK(took >= std::min(wait, least));
  CHECK(took <= std::max(wait, least) + 1ms);
}

}  // namespace

TEST_CASE("a wait is the bound of a call to a server that has stopped", "[edge-13]") {
  for (bool const direct : {false, true})
    for (milliseconds const wait : {1ms, 20ms, 100ms, 700ms}) {
      INFO("wait " << wait.count() << (direct ? ", blocking" : ""));
      world w;
      warm_lane(w);
      w.deafen(role::shared);
      w.deafen(role::direct);
      task& one = w.acquire(1, {.wait = wait, .direct = direct});
      check_bound(w, one, wait);
      CHECK(one.error == errc::timeout);
      w.deafen(role::shared, false);
      w.pass(10s);
      CHECK_FALSE(w.server.has("k", w.field(1)));
      w.finish();
    }
}

TEST_CASE("a first try that is answered within a moment counts, however short the wait was", "[edge-13]") {
  for (bool const direct : {false, true}) {
    world w;
    warm_lane(w);
    role const way = direct ? role::direct : role::shared;
    w.mute(way);
    task& one = w.acquire(1, {.wait = 1ms, .direct = direct});
    w.pass(least - 5ms);
    CHECK_FALSE(one.done());
    w.mute(way, false).run();
    CHECK(one.granted());
    w.finish();
  }
}

TEST_CASE("who could not try yet is given the moment that a first try has", "[edge-13]") {
  // Who has just dropped it; who is behind that release; who is behind a try.
  auto const owner = GENERATE(as<std::uint64_t>(), 1, 2, 3);
  bool const free = GENERATE(true, false);
  INFO(owner << (free ? ", free" : ", taken"));
  world w;
  warm_lane(w);
  task& held = granted(w, w.acquire(1, {.lease = 10s}));
  w.run();
  w.deafen(role::shared);
  w.drop(held).run();
  task* const before = owner == 3 ? &w.acquire(2, {.wait = 20s}) : nullptr;
  w.run();
  task& one = w.run(w.acquire(owner, {.wait = 3ms}));
  w.pass(10ms);
  CHECK_FALSE(one.done());
  if (!free) {
    w.server.remove("k");
    w.server.stranger_takes("k", stranger, 1'000);
  }
  w.deafen(role::shared, false).run();
  if (before) {
    CHECK(before->granted() == free);
    CHECK(one.busy());
  } else {
    CHECK((free ? one.granted() : one.busy()));
  }
  if (before) w.await(*before);
  w.finish();
}

TEST_CASE("a wait is the bound of a call to a server that says no for long", "[edge-13][edge-15]") {
  for (std::string const words :
       {"LOADING Redis is loading the dataset in memory", "BUSY Redis is busy running a script",
        "READONLY You can't write against a read only replica.",
        "OOM command not allowed when used memory > 'maxmemory'.", "MASTERDOWN Link with MASTER is down",
        "NOREPLICAS Not enough good replicas to write.", "MISCONF Redis is configured to save RDB snapshots",
        "CLUSTERDOWN The cluster is down", "TRYAGAIN Multiple keys request during rehashing of slot"})
    for (bool const direct : {false, true})
      for (milliseconds const wait : {1ms, 100ms, 5'000ms}) {
        INFO(words << ", wait " << wait.count() << (direct ? ", blocking" : ""));
        world w;
        warm_lane(w);
        w.server.refuse("EVALSHA acquire", words, -1);
        task& one = w.acquire(1, {.wait = wait, .direct = direct});
        check_bound(w, one, wait);
        CHECK((one.error == errc::timeout || one.error == errc::connect_failed));
        CHECK(one.text.find(words) != std::string::npos);
        w.server.accept_all();
        w.pass(10s);
        CHECK(w.server.all().empty());
        w.finish();
      }
}

TEST_CASE("whoever is told what a waiter was refused with hears its code and its words") {
  std::string const words = "OOM command not allowed when used memory > 'maxmemory'.";
  detail::kind const& which = *GENERATE(as<detail::kind const*>(), &detail::reentrant_kind(), &detail::spin_kind());
  world w;
  w.run(w.once(9, {.name = "warm", .which = &which}));
  auto const& script = which.script_for(detail::ask::acquire);
  w.server.answer_with(script, "local made = {} for i = 1, #KEYS do made[i] = \"" + words + "\" end return made");
  task& waits = w.run(w.acquire(1, {.which = &which}));
  CHECK_FALSE(waits.done());
  w.server.answer_with(script, "");
  w.lose(role::shared, fate::gone);
  task& asks = w.once(2, {.which = &which});
  w.until([&] { return asks.done(); });
  CHECK(asks.error == errc::server_error);
  CHECK(asks.text == words);
  bool const for_good = GENERATE(false, true);
  if (for_good) w.server.refuse("ROLE", "NOAUTH Authentication required.", -1);
  w.await(waits);
  CHECK(waits.granted() == !for_good);
  if (for_good) CHECK((waits.error == errc::auth_failed && waits.text == "NOAUTH Authentication required."));
  w.server.accept_all();
  w.finish();
}

TEST_CASE("all who wait behind a stranger are told that it has the lock, and nobody asks for them when one leaves") {
  auto const apart = GENERATE(0ms, 7ms);
  bool const cancels = GENERATE(false, true);
  world w(seen_by_the_server());
  w.server.stranger_takes("k", stranger, 20'000);
  std::vector<task*> all;
  for (std::uint64_t owner = 1; owner <= 5; ++owner) {
    all.push_back(&w.run(w.acquire(owner, {.wait = 300ms})));
    w.pass(apart);
  }
  w.server.log.clear();
  if (cancels) {
    w.cancel(*all[0]).run();
  }
  w.pass(400ms);
  for (task const* one : all) CHECK((one == all[0] && cancels ? one->done() : one->busy()));
  CHECK(w.server.ran("EVALSHA acquire") == 0);
  w.finish();
}

TEST_CASE("a wait is the bound of a call whose connection is lost, or waits for a KILL", "[edge-13][edge-9]") {
  for (milliseconds const wait : {1ms, 100ms, 2'000ms}) {
    INFO("wait " << wait.count());
    world w;
    warm_lane(w);
    w.mute(role::shared);
    task& one = w.run(w.acquire(1, {.wait = wait}));
    w.unreachable = "refused";
    w.lose(role::shared, fate::late);
    check_bound(w, one, wait);
    CHECK(one.error == errc::timeout);
    CHECK(latchkey::may_still_be_held(one.error));
    w.unreachable.clear();
    w.pass(10s);
    CHECK(w.server.all().empty());
    w.finish();
  }
}

// He was told busy, was woken, and asked again: the answer to that counts, not the one before.
TEST_CASE("a waiter whose latest try is unanswered when his wait ends is not told busy", "[edge-13][edge-9]") {
  for (milliseconds const before : {10ms, 49ms, 50ms, 400ms}) {
    INFO("tries " << before.count() << " ms before its wait ends");
    world w;
    warm_up(w);
    w.server.stranger_takes("k", stranger, 60'000);
    task& one = w.run(w.acquire(1, {.wait = 1s}));
    w.pass(1s - before);
    w.deafen(role::shared);
    w.server.stranger_releases("k", stranger);
    check_bound(w, one, std::max<milliseconds>(before, least));
    CHECK(one.error == errc::timeout);
    CHECK(one.done_at == one.started + std::max(1'000ms, 1'000ms - before + least));
    w.deafen(role::shared, false);
    w.pass(10s);
    CHECK_FALSE(w.server.has("k", w.field(1)));
    w.finish();
  }
}

// The lease of whoever kept it out ends while no server says so.
TEST_CASE("a waiter whose latest try could not be made when its wait ends is not told busy", "[edge-13]") {
  for (bool const refuses : {false, true}) {
    for (bool const leads : {false, true}) {
      INFO((refuses ? "refused" : "gone") << (leads ? ", and others behind it" : ""));
      world w;
      warm_up(w);
      w.server.stranger_takes("k", stranger, 1'000);
      task& one = w.run(w.acquire(1, {.wait = 6s}));
      task* const behind = leads ? &w.run(w.acquire(2, {.wait = 6s})) : nullptr;
      w.pass(400ms);
      REQUIRE_FALSE(one.done());
      if (refuses) {
        w.server.refuse("EVALSHA", "BUSY Redis is busy running a script.", -1);
      } else {
        lose_server(w);
      }
      w.pass(7s);
      CHECK(one.error == errc::timeout);
      if (behind) CHECK(behind->error == (refuses ? errc::timeout : errc::connect_failed));  // it was never sent
      w.server.accept_all();
      w.unreachable.clear();
      w.pass(10s);
      CHECK_FALSE(w.server.has("k", w.field(1)));
      w.finish();
    }
  }
}

// Also once that try is the client's own remains, for whose answer the next one waits.
TEST_CASE("who waits behind one whose due try is unanswered is not told busy", "[edge-13]") {
  auto const& which =
      *GENERATE(as<detail::kind const*>(), &detail::reentrant_kind(), &detail::spin_kind(), &detail::plain_kind());
  auto const later = GENERATE(-3'000ms, 0ms, 2'000ms);
  INFO(which.rules().name << ", " << later.count() << " ms later than the first");
  world w(seen_by_the_server(), 2);
  warm_up(w);
  granted(w, w.acquire(9, {.lease = 1s, .client = 1, .which = &which}));
  task& one = w.acquire(1, {.wait = 6s, .which = &which});
  task& behind = w.run(w.acquire(2, {.wait = 6s + later, .which = &which}));
  w.pass(400ms);
  REQUIRE_FALSE(one.done());
  stop_server(w);
  w.pass(8s);
  CHECK(one.error == errc::timeout);
  CHECK(behind.error == (later < 0ms ? errc::timeout : errc::connect_failed));  // it was never sent
  CHECK(behind.done_at == behind.started + 6s + later);
  w.nobody_answers = false;
  w.pass(20s);
  w.finish();
}

TEST_CASE("who waits behind one whose due try may just be answered is told busy", "[edge-13]") {
  bool const leaves = GENERATE(false, true);
  for (milliseconds const before : {10ms, 49ms, 50ms, 400ms}) {
    INFO("tries " << before.count() << " ms before the wait ends" << (leaves ? ", and leaves" : ""));
    world w;
    warm_up(w);
    w.server.stranger_takes("k", stranger, 60'000);
    task& one = w.acquire(1, {.wait = 3s});
    task& behind = w.run(w.acquire(2, {.wait = 1s}));
    w.pass(1s - before);
    w.mute(role::shared);
    w.server.stranger_releases("k", stranger);
    w.server.stranger_takes("k", stranger, 60'000);
    w.run();
    if (leaves) w.cancel(one);
    w.pass(before);
    CHECK(behind.done());
    CHECK(behind.busy() == (before < least));
    w.mute(role::shared, false).pass(3s);
    w.server.stranger_releases("k", stranger);
    w.finish();
  }
}

TEST_CASE("a waiter that a caller of its client keeps out is told busy, whatever the server does", "[edge-13]") {
  world w;
  granted(w, w.acquire(1));
  task& one = w.run(w.acquire(2, {.wait = 2s}));
  w.pass(400ms);
  lose_server(w);
  w.pass(2s);
  CHECK(one.busy());
  w.unreachable.clear();
  w.pass(10s);
  w.finish();
}

TEST_CASE("a waiter's latest try that is answered a moment after his wait counts", "[edge-13]") {
  for (bool const free : {false, true}) {
    world w;
    warm_up(w);
    w.server.stranger_takes("k", stranger, 60'000);
    task& one = w.run(w.acquire(1, {.wait = 1s}));
    w.pass(990ms);
    w.mute(role::shared);
    w.server.stranger_releases("k", stranger);
    if (!free) w.server.stranger_takes("k", stranger, 60'000);
    w.pass(20ms);
    CHECK_FALSE(one.done());
    w.mute(role::shared, false).run();
    CHECK(one.granted() == free);
    CHECK(one.busy() == !free);
    if (!free) w.server.stranger_releases("k", stranger);
    w.finish();
  }
}

TEST_CASE("whoever was never sent anywhere is told that no connection could be made", "[edge-15]") {
  for (milliseconds const wait : {1ms, 100ms, 2'000ms}) {
    INFO("wait " << wait.count());
    world w;
    w.unreachable = "Connection refused";
    task& one = w.acquire(1, {.wait = wait});
    check_bound(w, one, wait);
    CHECK(one.error == errc::connect_failed);
    CHECK(one.text == "Connection refused");
    w.unreachable.clear();
    w.finish();
  }
  world silent;
  silent.nobody_answers = true;
  task& one = silent.acquire(1, {.wait = 100ms});
  check_bound(silent, one, 100ms);
  CHECK(one.error == errc::connect_failed);
  CHECK_FALSE(one.text.empty());
  silent.nobody_answers = false;
  silent.finish();
}

TEST_CASE("whoever was asked and never answered is not told that nothing is left", "[edge-9]") {
  world w;
  warm_lane(w);
  w.mute(role::shared);
  task& one = w.once(1);
  task& waits = w.run(w.acquire(2, {.name = "other"}));
  REQUIRE(w.server.has("k", w.field(1)));
  SECTION("the new connection is refused for good") {
    w.server.redis.password = "changed";
    w.lose(role::shared, fate::ran);
    w.await(one, waits);
    CHECK(one.error == errc::connection_lost);
    CHECK(waits.error == errc::connection_lost);
    CHECK(one.text.find("NOAUTH") != std::string::npos);
    w.server.redis.password.clear();
  }
  SECTION("no new connection can be made") {
    w.unreachable = "Connection refused";
    w.lose(role::shared, fate::ran);
    w.await(one);
    CHECK(one.error == errc::connection_lost);
    CHECK(one.text.find("Connection refused") != std::string::npos);
    w.unreachable.clear();
  }
  w.faulty = true;
  w.pass(10s);
  w.finish();
}

TEST_CASE("an answer that comes after its lease is a late answer", "[edge-9]") {
  world w;
  warm_lane(w);
  w.mute(role::shared);
  task& one = w.once(1, {.lease = 200ms});
  w.pass(300ms);
  w.mute(role::shared, false).run();
  CHECK(one.error == errc::timeout);
  CHECK(one.text == "the lease had ended before its answer came");
  w.finish();
}

TEST_CASE("a call with time left tries again when its answer comes after its lease") {
  bool const again = GENERATE(true, false);
  world w;
  warm_lane(w);
  w.mute(role::shared);
  task& one = w.acquire(1, {.wait = 1s, .lease = 200ms});
  w.pass(300ms);
  if (again) w.mute(role::shared, false);
  w.run();
  CHECK(one.granted() == again);
  if (again) w.await(w.release(one));
  w.pass(800ms);
  CHECK(one.done());
  if (!again) CHECK(one.error == errc::timeout);
  w.mute(role::shared, false);
  w.await(w.acquire(2, {.wait = 5s}));
  w.finish();
}

TEST_CASE("a release that ends without an answer goes on", "[edge-15]") {
  world w;
  task& held = granted(w, w.acquire(1));
  w.unreachable = "Connection refused";
  w.lose(role::shared, fate::gone);
  task& ended = w.await(w.release(held));
  CHECK(ended.error == errc::connection_lost);
  CHECK(ended.text.find("Connection refused") != std::string::npos);
  w.unreachable.clear();
  w.pass(5s);
  CHECK(w.server.all().empty());
  w.finish();
}

TEST_CASE("a single try behind a waiter whom the server refused is refused, too", "[edge-22]") {
  world w;
  warm_lane(w);
  w.server.redis.full = true;
  task& waits = w.run(w.acquire(1));
  REQUIRE_FALSE(waits.done());
  for (bool const direct : {false, true}) {
    task& one = w.run(w.once(2, {.direct = direct}));
    CHECK(one.error == errc::server_error);
    CHECK(one.text.starts_with("OOM"));
  }
  SECTION("also one that was there before the answer") {
    w.until([&] { return waits.where == task::place::trying; });
    task& early = w.run(w.once(3));
    CHECK(early.error == errc::server_error);
    CHECK(early.text.starts_with("OOM"));
  }
  SECTION("once it is somebody else's the answer is busy") {
    w.server.redis.full = false;
    w.server.stranger_takes("k", "stranger", 60'000);
    w.pass(3s);
    CHECK(w.run(w.once(3)).busy());
    w.server.stranger_releases("k", "stranger");
  }
  w.server.redis.full = false;
  granted(w, waits);
  w.finish();
}
