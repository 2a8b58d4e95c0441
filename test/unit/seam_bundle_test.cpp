// Acquires that leave together, all or none: what a lock of several members asks of the machines.
#include <support/catch.hpp>
#include <support/unit/bundles.hpp>
#include <support/unit/made_kind.hpp>
#include <support/unit/stories.hpp>
#include <support/unit/sweep.hpp>

#include <string>
#include <vector>

using namespace latchkey;
using namespace latchkey::test;
using namespace std::chrono_literals;

namespace {

made_kind const& made() {
  static made_kind const the_one({.name = "made"});
  return the_one;
}

std::vector<task*> bundle(world& w, std::vector<std::string> const& names, how options = {}, std::uint64_t number = 7) {
  std::vector<task*> all;
  options.bundle = number;
  for (auto const& name : names) {
    options.name = name;
    all.push_back(&w.once(1, options));
  }
  return all;
}

}  // namespace

TEST_CASE("seam: a bundle leaves in one call of its own and is granted as a whole") {
  world w;
  task& other = w.once(2, {.name = "x"});
  auto const all = bundle(w, {"a", "b", "c"});
  task& last = w.run(w.once(2, {.name = "y"}));
  for (task const* one : all) CHECK(one->granted());
  CHECK((other.granted() && last.granted()));
  CHECK(w.server.ran("EVALSHA acquire_all a ") == 1);
  CHECK(w.server.ran("EVALSHA acquire_all") == 1);
  CHECK(w.server.ran("EVALSHA acquire ") == 2);
  w.finish();
}

TEST_CASE("seam: one busy member keeps a whole bundle from being granted") {
  world w;
  w.server.stranger_takes("b", stranger, 20'000);
  auto const all = bundle(w, {"a", "b", "c"});
  w.run();
  CHECK((all[1]->busy() && !all[1]->untried));
  for (task const* one : {all[0], all[2]}) {
    CHECK(one->busy());
    CHECK(one->untried);
  }
  CHECK(w.server.all() == std::set<std::string>{"b/stranger:1=1"});
  w.finish();
}

TEST_CASE("seam: a caller who came behind an untried one has his try") {
  world w;
  w.server.stranger_takes("b", stranger, 20'000);
  auto const all = bundle(w, {"a", "b"});
  task& next = w.run(w.acquire(2, {.name = "a"}));
  CHECK(all[0]->untried);
  CHECK(next.granted());
  w.finish();
}

TEST_CASE("seam: a bundle of which one has to wait here asks for no other") {
  std::string const why = GENERATE("others wait", "a turn", "a release");
  INFO(why);
  world w(with_turns());
  w.run(w.once(3, {.name = "x"}));
  if (why == "others wait") {
    w.server.stranger_takes("b", stranger, 20'000);
    w.run(w.acquire(2, {.name = "b"}));
  } else {
    task& held = w.run(w.acquire(2, {.name = "b"}));
    REQUIRE(held.granted());
    if (why == "a release") {
      w.deafen(role::shared);
      w.release(held);
      w.run();
    }
  }
  w.server.log.clear();
  auto const all = bundles::once(w, {"a", "b", "c"});
  for (task const* one : {all[0], all[2]}) CHECK((one->busy() && one->untried));
  CHECK(w.server.ran("EVALSHA acquire") == 0);
  w.deafen(role::shared, false);
  w.await(*all[1]);
  CHECK(all[1]->granted() == (why == "a release"));
  CHECK_FALSE(all[1]->untried);
  CHECK(w.server.ran("EVALSHA acquire a ") == 0);
  w.finish();
}

TEST_CASE("seam: a bundle of whoever has had it all the time leaves it to those who wait elsewhere") {
  for (bool const comes_back : {true, false}) {
    INFO(comes_back);
    world w(with_turns(), 2);
    auto held = bundles::granted(w, bundles::once(w, {"a", "b"}));
    task& other = w.run(w.acquire(9, {.name = "a", .client = 1}));
    w.deafen(role::shared, true, 1);
    int rounds = 0;
    for (bool granted = true; granted && rounds < 20; ++rounds) {
      w.pass(1ms);
      bundles::await(w, bundles::release(w, held));
      w.server.log.clear();
      held = bundles::await(w, bundles::once(w, {"a", "b"}, {.comes_back = comes_back}));
      granted = held[0]->granted();
    }
    CHECK(rounds == (comes_back ? 3 : 20));
    if (comes_back) {
      CHECK((held[0]->untried && held[1]->untried));
      CHECK(w.server.ran("EVALSHA acquire") == 0);
    }
    w.deafen(role::shared, false, 1);
    for (task* const one : bundles::held(held)) w.drop(*one);
    CHECK(w.await(other).granted());
    w.finish();
  }
}

TEST_CASE("seam: two bundles of one turn are two calls") {
  world w;
  bundle(w, {"a", "b"}, {}, 1);
  bundle(w, {"c", "d"}, {}, 2);
  w.run();
  CHECK(w.server.ran("EVALSHA acquire_all") == 2);
  w.finish();
}

TEST_CASE("seam: a bundle of one, or of a kind without the script, is ordinary") {
  world w;
  auto const all = bundle(w, {"a"});
  w.run();
  CHECK(all[0]->granted());
  CHECK(w.server.ran("EVALSHA acquire a") == 1);
  w.finish();
}

TEST_CASE("seam: a made-up kind has a bundle script of its own") {
  world w;
  auto const all = bundle(w, {"a", "b"}, {.which = &made()});
  w.run();
  CHECK((all[0]->granted() && all[1]->granted()));
  CHECK(w.server.ran("EVALSHA made_acquire_all") == 1);
  w.finish();
}

TEST_CASE("seam: an unknown bundle script is sent again as a whole") {
  world w;
  w.server.flush_scripts();
  auto const all = bundle(w, {"a", "b", "c"});
  w.run();
  for (task const* one : all) CHECK(one->granted());
  CHECK(w.server.ran("EVAL acquire_all") == 1);
  w.finish();
}

TEST_CASE("seam: a re-entry in a bundle raises the count, and a lost outer hold is found") {
  world w;
  task& outer = granted(w, w.acquire(1, {.name = "a"}));
  auto const again = bundle(w, {"a", "b"});
  w.run();
  CHECK((again[0]->granted() && again[1]->granted()));
  CHECK(w.server.all().size() == 2);
  w.release(*again[0]);
  w.run(w.release(*again[1]));
  outer.removed = true;
  w.server.remove("a");
  auto const late = bundle(w, {"a", "c"});
  w.run();
  CHECK(outer.losses == 1);
  CHECK(late[0]->granted());  // tried anew, by itself
  CHECK(late[1]->untried);
  w.finish();
}

TEST_CASE("seam: what the unanswered copy of a bundle was granted goes back when the next one finds another busy") {
  world w;
  granted(w, w.acquire(3, {.name = "warm"}));
  std::vector<task*> all;
  leave_unanswered(w, role::shared, [&] { all = bundle(w, {"a", "b"}); });
  w.server.remove("b");  // the first copy was granted both; now one of them is lost
  w.server.stranger_takes("b", stranger, 20'000);
  for (task* one : all) w.await(*one);
  w.run();
  CHECK((all[0]->untried && all[1]->busy()));
  CHECK_FALSE(w.server.exists("a"));
  w.finish();
}

TEST_CASE("seam: a refused member refuses only itself") {
  world w;
  w.server.ask({"RPUSH", "b", "something"});
  auto const all = bundle(w, {"a", "b"});
  w.run();
  CHECK(all[0]->untried);
  CHECK(all[1]->error == errc::wrong_type);
  w.server.remove("b");
  w.finish();
}

TEST_CASE("sweep: seam: a bundle against another client's") {
  sweep({.play = [](world& w) {
    auto const all = bundle(w, {"a", "b", "c"});
    for (task* one : all) w.await(*one);
    for (task* one : all)
      if (one->granted()) w.drop(*one);
    auto const again = bundle(w, {"c", "a"}, {.direct = true}, 8);
    for (task* one : again) w.await(*one);
    for (task* one : again)
      if (one->granted()) w.release(*one);
  }});
}

// Two kinds that keep the same data under one name, as those of the reentrant lock's family do.

namespace {

made_kind const& first() {
  static made_kind const the_one({.name = "first"});
  return the_one;
}

made_kind const& second() {
  static made_kind const the_one({.name = "second"});
  return the_one;
}

struct two_kinds : world {
  // What the owner hears who asks for the name as the second kind.
  error_code asks(std::uint64_t owner) {
    task& asked = once(owner, {.which = &second()});
    bool const at_once = asked.done();
    await(asked);
    CHECK(at_once == (asked.error == errc::bad_argument));
    if (at_once) CHECK(asked.text == "the owner has this name already as a first");
    return asked.error;
  }
  std::size_t tries() const { return server.ran("EVALSHA made_acquire"); }
};

}  // namespace

TEST_CASE("seam: an owner who holds a name is refused it through another kind, and nothing is sent") {
  two_kinds w;
  task& a = granted(w, w.acquire(1, {.which = &first()}));
  CHECK(w.asks(1) == errc::bad_argument);
  w.run();
  CHECK(w.tries() == 1);
  CHECK(w.server.count("k", w.field(1)) == 1);
  CHECK(a.trusted(w.now));
  task& other = granted(w, w.acquire(1, {.name = "elsewhere", .which = &second()}));
  w.await(w.release(other));
  task& twice = granted(w, w.acquire(1, {.which = &first()}));
  w.await(w.release(twice));
  CHECK(w.asks(1) == errc::bad_argument);
  w.await(w.release(a));
  task& b = granted(w, w.acquire(1, {.which = &second()}));
  w.await(w.release(b));
  w.finish();
}

TEST_CASE("seam: an owner who waits for a name, or tries, is refused it through another kind") {
  two_kinds w;
  task& tries = w.acquire(1, {.which = &first()});
  CHECK(w.asks(1) == errc::bad_argument);
  w.await(tries);
  CHECK(w.tries() == 1);
  task& waits = w.run(w.acquire(2, {.which = &first()}));
  CHECK(w.asks(2) == errc::bad_argument);
  w.cancel(waits).run();
  CHECK(w.asks(2) == error_code());  // busy, and that is no error
  w.finish();
}

TEST_CASE("seam: an owner whose release is under way is refused the name through another kind until its answer") {
  two_kinds w;
  task& a = granted(w, w.acquire(1, {.which = &first()}));
  w.drop(a);
  CHECK(w.asks(1) == errc::bad_argument);
  w.run();
  CHECK(w.tries() == 1);
  task& b = granted(w, w.acquire(1, {.which = &second()}));
  w.release(b);
  w.finish();
}

TEST_CASE("seam: a hold that was lost does not keep its owner from another kind") {
  two_kinds w;
  w.watch_holds = false;
  task& a = granted(w, w.acquire(1, {.lease = 500ms, .which = &first()}));
  w.pass(600ms);
  CHECK(a.losses == 1);
  task& b = granted(w, w.acquire(1, {.which = &second()}));
  w.release(b);
  w.finish();
}

TEST_CASE("seam: different owners exclude each other through different kinds") {
  two_kinds w;
  task& a = granted(w, w.acquire(1, {.which = &first()}));
  task& b = w.run(w.acquire(2, {.which = &second()}));
  CHECK_FALSE(b.done());
  w.run(w.release(a));
  CHECK(b.granted());
  w.finish();
}

TEST_CASE("seam: names that are swept forget their namesakes") {
  two_kinds w;
  for (std::uint64_t i = 0; i < 3'000; ++i) {
    std::string const name = "n" + std::to_string(i);
    for (made_kind const* which : {&first(), &second()}) {
      task& one = granted(w, w.acquire(1, {.name = name, .which = which}));
      w.await(w.release(one));
    }
    w.keeps_history = false;
  }
  w.finish();
}
