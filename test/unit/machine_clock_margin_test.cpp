// Rule 10 of docs/safety.md, "After a failover": a hold is trusted for less than its lease. The world looks after every
// event whether the server keeps it for `clock_margin` longer.
#include <support/catch.hpp>
#include <support/unit/stories.hpp>
#include <support/unit/sweep.hpp>
#include <support/unit/topologies.hpp>
#include <wire/commands.hpp>

using namespace latchkey;
using namespace latchkey::test;
using namespace std::chrono_literals;

namespace {

config with_margin(config made = seen_by_the_server()) {
  made.clock_margin = 2s;
  return made;
}

std::vector<std::string> warnings(world const& w) {
  std::vector<std::string> made;
  for (auto const& one : w.notes)
    if (one.type == event_type::warning) made.push_back(one.text);
  return made;
}

}  // namespace

TEST_CASE("clock_margin is taken off grants, renewals, extensions and what an inner release leaves",
          "[unit][case-t50]") {
  auto const story = [](world& w) {
    task& outer = w.await(w.acquire(1, {.lease = 60s}));
    task& inner = w.await(w.acquire(1, {.lease = 5s}));
    if (inner.granted()) w.await(w.extend(inner, 10s));
    if (outer.granted()) w.await(w.extend(outer, 4s));
    w.pass(1s);
    if (inner.granted()) w.await(w.release(inner));
    w.pass(3s);
    task& renewed = w.await(w.acquire(2));
    w.pass(25s);
    w.expect(renewed.trusted(w.now), "renewed");
    task& next = w.acquire(3, {.max_hold = 12s});
    task& last = w.run(w.acquire(4, {.lease = 7s}));
    if (renewed.granted()) w.release(renewed);
    w.await(next);
    w.pass(13s);
    w.expect(next.losses == 1, "its most is over");
    w.drop(next);
    w.await(last);
  };
  sweep({.play = story, .settings = [] { return with_margin(); }});
  sweep({.play = story, .settings = [] { return with_margin(with_turns(seen_by_the_server())); }});
}

TEST_CASE("clock_margin is taken off what a permit is given anew", "[unit][case-t50]") {
  for (milliseconds const lease : {5'000ms, 40'000ms}) {
    world w(with_margin());
    w.exclusive = false;
    w.watch_holds = false;
    w.server.set("k", 1);
    task& one = granted(w, w.acquire(1, a_permit(20s)));
    auto const sent = w.now;
    auto options = a_permit(lease);
    options.argument = detail::permit_semaphore_kind().field("clientA", 1, 0);
    w.await(w.command(static_cast<unsigned char>(detail::permit_command::update), options));
    CHECK(one.shown.until() <= sent + lease - w.settings.clock_margin);
  }
}

TEST_CASE("max_hold is not shortened by clock_margin", "[unit]") {
  world w(with_margin());
  task& one = granted(w, w.acquire(1, {.max_hold = 12s}));
  w.pass(12s - 10ms);
  CHECK(one.trusted(w.now));
  w.pass(10ms);
  CHECK_FALSE(one.trusted(w.now));
  CHECK(w.noted(event_type::max_hold_reached) == 1);
  w.drop(one);
  w.finish();
}

TEST_CASE("a server whose clock differs by more than clock_margin is told", "[unit][case-t50]") {
  auto const said = [](milliseconds behind, config settings) {
    world w(settings);
    w.clock_behind = behind;
    w.drop(granted(w, w.acquire(1)));
    w.finish();
    return warnings(w);
  };
  CHECK(said(5s, with_margin()) ==
        std::vector<std::string>{"its clock is 5000 ms ahead of this machine's: more than clock_margin"});
  CHECK(said(-3s, with_margin()) ==
        std::vector<std::string>{"its clock is 3000 ms behind this machine's: more than clock_margin"});
  CHECK(said(2s, with_margin()).empty());
  CHECK(said(-2s, with_margin()).empty());
  CHECK(said(5s, seen_by_the_server()).empty());
}

// Its copies of leases end so much earlier: they are written as times of day.
TEST_CASE("a new master whose clock is ahead by more than clock_margin is told", "[unit][machine][case-t50]") {
  for (bool const told : {true, false}) {
    config given = told ? with_margin(impatient()) : impatient();
    given.check_sentinels_list = false;  // whose warnings are no matter
    failover f(1, given);
    f.next.clock_ahead = 5s;
    auto& held = f.w.await(f.w.acquire(1, {.lease = 60s}));
    f.w.pass(500ms);
    CHECK(warnings(f.w).empty());
    f.copy();
    CHECK(f.next.ttl("k") == 54'500);
    f.promote();
    f.w.run();
    if (told)
      CHECK(warnings(f.w) ==
            std::vector<std::string>{"node1:1: its clock is 5000 ms ahead of this machine's: more than clock_margin"});
    else
      CHECK(warnings(f.w).empty());
    f.w.await(f.w.release(held));
  }
}
