#include <support/catch.hpp>
#include <support/unit/stories.hpp>
#include <support/unit/sweep.hpp>

using namespace latchkey;
using namespace latchkey::test;
using namespace std::chrono_literals;

namespace {

constexpr auto loading = "LOADING Redis is loading the dataset in memory";

}  // namespace

TEST_CASE("connect: three connections, one script, nothing left") {
  world w;
  task& one = w.run(w.connect(10s));
  CHECK(one.completions == 1);
  CHECK(one.error == error_code());
  for (role const as : {role::shared, role::direct, role::messages}) CHECK(w.connected(as));
  CHECK(w.server.subscriptions() == 0);
  int const before = w.opened;
  std::size_t const commands = w.server.log.size();
  CHECK(w.run(w.connect(10s)).error == error_code());
  CHECK(w.opened == before);
  CHECK(w.server.log.size() == commands + 1);
  w.finish();
}

TEST_CASE("connect: tries until its wait ends, whatever the attempts of others, and says the last words") {
  world w({.retry_attempts = 0});
  w.server.refuse("EVALSHA nothing", loading, -1);
  task& one = w.connect(5s);
  w.pass(4'990ms);
  CHECK_FALSE(one.done());
  w.pass(10ms);
  CHECK(one.error == errc::server_error);
  CHECK(one.text == loading);
  task& later = w.connect(5s);
  w.pass(1s);
  w.server.accept_all();
  w.pass(4s);
  CHECK(later.done());
  CHECK(later.error == error_code());
  w.finish();
}

TEST_CASE("connect: no route, then a server that is silent") {
  world w;
  w.unreachable = "Connection refused";
  task& none = w.connect(1s);
  w.pass(1s);
  CHECK(none.error == errc::connect_failed);
  CHECK(none.text == "Connection refused");
  w.unreachable.clear();
  task& first = w.connect(10s);
  w.pass(3s);
  CHECK(first.error == error_code());
  w.deafen(role::shared);
  task& silent = w.connect(500ms);
  w.pass(500ms);
  CHECK(silent.error == errc::timeout);
}

TEST_CASE("connect: a link that cannot be had is not waited for, one that dies after the answer asks again") {
  world w;
  w.server.refuse("CLIENT LIST", "NOPERM this user has no permissions to run the 'client|list' command", -1);
  w.server.refuse("SUBSCRIBE", "NOPERM this user has no permissions to run the 'subscribe' command", -1);
  task& one = w.run(w.connect(10s));
  CHECK(one.done());
  CHECK(one.error == error_code());
  CHECK_FALSE(w.connected(role::direct));
  CHECK(w.noted(event_type::lane_unchecked) == 1);
  CHECK(w.noted(event_type::subscribe_refused) == 1);
  w.finish();

  world v;
  task& two = v.connect(10s);
  v.until([&] { return v.connected(role::messages); });
  v.deafen(role::messages).run();
  REQUIRE_FALSE(two.done());
  v.lose(role::shared, fate::gone);
  v.pass(1s);
  CHECK(two.done());
  CHECK(two.error == error_code());
  CHECK(v.connected(role::messages));
  v.finish();
}

TEST_CASE("connect: cancelled or closed at every moment") {
  for (bool const closes : {false, true})
    for (int steps = 0;; ++steps) {
      world w;
      task& one = w.connect(10s);
      for (int i = 0; i < steps && !one.done(); ++i) w.step();
      bool const was_done = one.done();
      if (closes)
        w.close();
      else
        w.cancel(one);
      w.run();
      CHECK(one.completions == 1);
      if (was_done) break;
      CHECK(one.error == (closes ? error_code(errc::closed) : error_code(ECANCELED, boost::system::system_category())));
    }
}

// What close() does to those who hold: docs/architecture.md, "The end of a client".

namespace {

config watched(milliseconds watchdog = 30s) { return {.lock_watchdog_timeout = watchdog}; }

// As by lock(): no lease shows it.
task& unshown(world& w, std::uint64_t owner, how const& options = {}) {
  task& one = w.acquire(owner, options);
  one.link = nullptr;
  one.ended = true;
  w.await(one);
  return one;
}

}  // namespace

TEST_CASE("closing: a lease is told, renewed on, and its release goes to the server") {
  world w(watched(900ms));
  task& held = granted(w, w.acquire(1));
  w.close().run();
  CHECK(held.losses == 1);
  CHECK(held.why_lost == errc::closed);
  CHECK(held.shown.lost);
  CHECK_FALSE(w.machine().closed());
  w.pass(1'200ms);
  CHECK(w.server.count("k", w.field(1)) == 1);
  CHECK(w.snapshot().renewals >= 3);
  CHECK(w.run(w.release(held)).released == release_result::released);
  CHECK(w.server.all().empty());
  CHECK(w.machine().closed());
  CHECK(w.noted(event_type::left_to_lease) == 0);
  w.finish();
}

TEST_CASE("closing: what leases still hold at the end of their time is left on the server") {
  world w(watched());
  task& held = granted(w, w.acquire(1, {.lease = 10s}));
  w.pass(1s);
  w.close();
  w.pass(1'799ms);
  CHECK_FALSE(w.machine().closed());
  w.pass(1ms);
  CHECK(w.machine().closed());
  CHECK(w.machine().quiet());
  CHECK(w.server.ttl("k") == 7'200);
  REQUIRE(w.noted(event_type::left_to_lease) == 1);
  CHECK(w.notes.back().type == event_type::left_to_lease);
  CHECK(w.notes.back().lock == "k");
  CHECK(w.notes.back().owner == 1);
  CHECK(w.notes.back().took == 7'200ms);
  CHECK(w.snapshot().held == 0);
  CHECK(w.snapshot().lost == 1);
  task& late = w.release(held);
  CHECK(late.error == errc::closed);
  CHECK(w.server.ttl("k") == 7'200);
  CHECK(held.losses == 1);
  w.pass(8s);
  w.drop(held);
  w.finish();
}

TEST_CASE("closing: the closing thread's own holds are released, others' without a lease are left at once") {
  world w(watched());
  unshown(w, 1, {.name = "mine"});
  unshown(w, 2, {.name = "yours", .lease = 5s});
  w.close(0, 1).run();
  CHECK(w.machine().closed());
  CHECK(w.server.count("mine", w.field(1)) == 0);
  CHECK(w.server.count("yours", w.field(2)) == 1);
  CHECK(w.noted(event_type::left_to_lease) == 1);
  CHECK(w.noted(event_type::released) == 1);
  w.pass(6s);
  CHECK(w.server.all().empty());
}

TEST_CASE("closing: while a lease is awaited only what gives back is served") {
  world w;
  task& held = granted(w, w.acquire(1, {.name = "awaited"}));
  unshown(w, 2);
  task& extension = w.extend(held, 5s);
  w.close();
  task& more = w.extend(held, 5s);
  task& taken = w.acquire(3, {.name = "other"});
  task& again = w.acquire(2);
  task& asked = w.ask(detail::query::is_locked);
  task& forced = w.force_unlock();
  task& unlocked = w.run(w.unlock(2));
  CHECK(extension.yes);
  for (task* one : {&more, &taken, &again, &asked, &forced}) CHECK(one->error == errc::closed);
  CHECK_FALSE(unlocked.error);
  CHECK(w.server.count("k", w.field(2)) == 0);
  CHECK_FALSE(w.machine().closed());
  w.drop(held).run();
  CHECK(w.machine().closed());
  w.finish();
}

TEST_CASE("closing: the release of one hold ends no other of its owner that is left to its lease") {
  world w;
  task& outer = granted(w, w.acquire(1, {.lease = 20s}));
  task& inner = granted(w, w.acquire(1, {.lease = 20s}));
  w.close();
  w.deafen(role::shared).run();
  w.drop(inner);
  w.pass(1'900ms);
  CHECK(w.machine().closed());
  w.deafen(role::shared, false).run();
  CHECK(w.server.count("k", w.field(1)) == 1);
  CHECK(w.server.ttl("k") > 10'000);
  w.pass(20'001ms);
  w.drop(outer);
  w.finish();
}

TEST_CASE("sweep: close with leases that are released meanwhile") {
  sweep({.play = [](world& w) {
    task& a = w.acquire(1);
    task& b = w.acquire(2, {.name = "other", .direct = true});
    w.await(a, b);
    w.close();
    if (a.granted()) w.await(w.release(a, true));
    if (b.granted()) w.drop(b);
    w.until([&] { return w.machine().closed(); });
    w.run();
    w.expect(w.server.all().empty(), "both are released");
    w.pass(31s);  // a fault may have taken the time that they had
  }});
}

TEST_CASE("closing: a thread that has ended is renewed no longer, and its leases are") {
  world w(watched(3s));
  unshown(w, 1, {.name = "by the thread"});
  task& lent = granted(w, w.acquire(1, {.name = "by a lease"}));
  w.pass(500ms);
  w.tell("thread 1 ends", [](auto& machine, auto now, auto& out) { machine.thread_ended(1, now, out); });
  CHECK(w.noted(event_type::holder_thread_ended) == 1);
  CHECK(w.notes.back().took == 2'500ms);
  w.pass(2'400ms);
  CHECK(w.server.count("by the thread", w.field(1)) == 1);
  w.pass(200ms);
  CHECK(w.server.count("by the thread", w.field(1)) == 0);
  w.pass(6s);
  CHECK_FALSE(lent.shown.lost);
  CHECK(w.server.count("by a lease", w.field(1)) == 1);
  CHECK(w.unlock(1, {.name = "by the thread"}).error == errc::lease_lost);
  w.finish();
}
