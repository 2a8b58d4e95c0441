#include <support/catch.hpp>
#include <support/unit/made_kind.hpp>
#include <support/unit/stories.hpp>
#include <support/unit/sweep.hpp>

using namespace latchkey;
using namespace latchkey::test;
using namespace std::chrono_literals;

// Made-up kinds that count something nobody owns: grants that are no holds, and commands of their own.

namespace {

constexpr unsigned char goes_on = 0, never_twice = 1, goes_again = 2;

made_kind const& places() {
  static made_kind const the_one({.name = "places",
                                  .exclusive = false,
                                  .hand_off = false,
                                  .grant_wakes_next = true,
                                  .renews = false,
                                  .remembers = 20'000,
                                  .hint_most = 10'000},
                                 some_places());
  return the_one;
}

made_kind const& gate() {
  static made_kind const the_one({.name = "gate",
                                  .exclusive = false,
                                  .hand_off = false,
                                  .grant_wakes_next = true,
                                  .takes = false,
                                  .grant_for_all = true,
                                  .renews = false},
                                 {{detail::ask::acquire,
                                   "local function item(key)\n"
                                   "  return call('exists', key) == 1 and 5000 or -3\n"
                                   "end\n"}});
  return the_one;
}

made_kind const& unrenewed() {
  static made_kind const the_one({.name = "unrenewed", .exclusive = false, .hand_off = false, .renews = false},
                                 {{detail::ask::acquire,
                                   "local function item(key, field, target, lease)\n"
                                   "  if lease ~= '0' then return 'ERR no lease' end\n"
                                   "  call('hset', key, field, 1)\n"
                                   "  return -3\n"
                                   "end\n"}});
  return the_one;
}

how a_place(std::int64_t amount = 1) { return {.which = &places(), .amount = amount, .keeps = false}; }

how add(std::int64_t amount) { return {.which = &places(), .amount = amount}; }

// A server on which so many places are free.
struct places_world {
  explicit places_world(std::int64_t free) {
    w.exclusive = false;
    w.server.set("k", free);
  }
  std::int64_t free() { return w.server.number("k"); }
  std::size_t tries() const { return w.server.ran("EVALSHA made_acquire"); }
  world w;
};

}  // namespace

TEST_CASE("seam: a grant that is not kept is no hold: nothing is renewed, lost or released") {
  places_world p(1);
  task& a = granted(p.w, p.w.acquire(1, a_place()));
  CHECK(p.w.snapshot().acquired == 1);
  CHECK(p.w.snapshot().held == 0);
  p.w.pass(60s);
  CHECK(a.losses == 0);
  CHECK(p.free() == 0);
  CHECK(p.w.server.ran("EVALSHA") == 1);
  p.w.finish();
}

TEST_CASE("seam: a hold of a kind that does not renew lasts until its release") {
  world w;
  w.exclusive = false;
  task& a = granted(w, w.acquire(1, {.which = &unrenewed()}));
  w.pass(600s);
  CHECK(a.trusted(w.now));
  CHECK(w.server.ran("EVALSHA") == 1);
  w.await(w.release(a));
  CHECK(w.server.all().empty());
  w.finish();
}

TEST_CASE("seam: a grant that says that nothing is left spares the next waiter his try") {
  places_world p(0);
  task& a = p.w.acquire(1, a_place());
  task& b = p.w.run(p.w.acquire(2, a_place()));
  std::size_t const before = p.tries();
  p.w.await(p.w.command(goes_on, add(1)));
  p.w.run();
  CHECK(a.granted());
  CHECK_FALSE(b.done());
  CHECK(p.tries() == before + 1);
  p.w.pass(1'002ms);  // the hint of that answer was for him
  CHECK(p.tries() == before + 2);
  p.w.await(p.w.command(goes_on, add(1)));
  p.w.run();
  CHECK(b.granted());
  p.w.finish();
}

TEST_CASE("seam: what one waiter is granted, all are who waited when it was asked for") {
  world w;
  w.exclusive = false;
  w.server.set("k", 1);
  std::vector<task*> all;
  for (std::uint64_t i = 1; i <= 100; ++i) all.push_back(&w.acquire(i, {.which = &gate(), .keeps = false}));
  w.run();
  std::size_t const before = w.server.ran("EVALSHA");
  w.server.remove("k");
  w.server.publish("made:k", "0");
  w.run();
  for (task* one : all) CHECK(one->granted());
  CHECK(w.server.ran("EVALSHA") == before + 1);
  w.finish();
}

TEST_CASE("seam: who leaves a kind that takes nothing leaves nothing to give back") {
  sweep_one_server({.play = [](world& w) {
    w.exclusive = false;
    w.server.set("k", 1);
    task& a = w.acquire(1, {.which = &gate(), .keeps = false});
    task& b = w.run(w.acquire(2, {.direct = true, .which = &gate(), .keeps = false}));
    w.server.remove("k");
    w.server.publish("made:k", "0");
    for (task* one : {&a, &b}) {
      w.await(*one);
      w.expect(one->granted(), "open");
    }
    w.expect(w.snapshot().given_back == 0, "nothing is given back");
  }});
}

TEST_CASE("seam: commands of one turn leave as one call, and each hears its answer") {
  places_world p(0);
  std::vector<task*> all;
  for (int i = 0; i < 10; ++i) all.push_back(&p.w.command(goes_on, add(1)));
  p.w.run();
  CHECK(p.w.server.ran("EVALSHA made_command") == 1);
  std::set<std::int64_t> values;
  for (task* one : all) {
    CHECK(one->yes);
    values.insert(one->value);
  }
  CHECK(values.size() == 10);
  CHECK(p.free() == 10);
  p.w.finish();
}

TEST_CASE("seam: a command whose answer was lost asks first, and counts once") {
  for (bool ran : {true, false}) {
    INFO("it ran: " << ran);
    places_world p(0);
    task& first = p.w.run(p.w.command(goes_again, add(1)));
    task& one = p.w.command(goes_again, add(5));
    if (ran) {
      leave_unanswered(p.w, role::shared, [&] {});
    } else {
      p.w.deafen(role::shared).run();
      p.w.lose(role::shared, fate::gone);
    }
    p.w.await(one);
    CHECK(first.yes);
    CHECK(one.yes);
    CHECK(one.value == 6);
    CHECK(p.free() == 6);
    p.w.finish();
  }
}

TEST_CASE("seam: a command that must not go again says so when the old connection is fenced") {
  places_world p(0);
  granted(p.w, p.w.acquire(1, a_place(0)));
  p.w.mute(role::shared);
  task& one = p.w.run(p.w.command(never_twice, add(5)));
  p.w.lose(role::shared, fate::gone);
  p.w.await(one);
  CHECK(one.error == errc::connection_lost);
  CHECK(p.w.snapshot().kills == 1);
  CHECK(p.free() == 5);
  p.w.finish();
}

TEST_CASE("seam: a command goes on or not when its caller gives up, as the kind says") {
  places_world p(0);
  p.w.unreachable = "no route";
  p.w.faulty = true;
  task& kept = p.w.command(goes_on, add(1));
  task& gone = p.w.command(goes_again, add(10));
  p.w.pass(120s);
  CHECK(kept.error);
  CHECK(gone.error);
  CHECK(p.free() == 0);
  p.w.unreachable.clear();
  p.w.finish();
  CHECK(p.free() == 1);
}

TEST_CASE("seam: when the server has forgotten, nobody pretends to know") {
  places_world p(5);
  granted(p.w, p.w.acquire(1, a_place()));
  p.w.mute(role::shared);
  task& took = p.w.acquire(2, a_place());
  task& added = p.w.run(p.w.command(goes_again, add(1)));
  p.w.unreachable = "no route";
  p.w.lose(role::shared, fate::gone);
  p.w.pass(19s);
  bool const soon = GENERATE(true, false);
  if (!soon) p.w.pass(5s);
  p.w.unreachable.clear();
  p.w.pass(30s);
  CHECK(took.done());
  CHECK(p.free() == 4);
  if (soon) {
    // Both ran, and their marks were still there. The command's own patience may have ended before.
    CHECK(took.granted());
  } else {
    CHECK(took.error == errc::connection_lost);
    CHECK(added.error);
  }
  p.w.finish();
}

TEST_CASE("sweep: seam: places that nobody owns, and commands that add some") {
  sweep_one_server({.play =
                        [](world& w) {
                          w.exclusive = false;
                          w.server.set("k", 2);
                          std::vector<task*> all;
                          for (std::uint64_t i = 1; i <= 4; ++i) {
                            how one = a_place(i == 2 ? 2 : 1);
                            one.direct = i == 3;
                            all.push_back(&w.acquire(i, one));
                          }
                          for (task* one : all) {
                            w.await(*one);
                            w.expect(one->granted(), "everybody gets a place");
                            if (one->granted()) w.await(w.command(goes_on, add(one->amount)));
                          }
                        },
                    .after =
                        [](world& w) {
                          if (w.server.number("k") != 2) w.fail("places were lost or made");
                        }});
}
