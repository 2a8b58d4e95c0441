#include <support/bounded_kind.hpp>
#include <support/catch.hpp>
#include <support/unit/stories.hpp>
#include <support/unit/sweep.hpp>

#include <memory>
#include <set>
#include <string>
#include <vector>

using namespace latchkey;
using namespace latchkey::test;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t names_kept_unused = 1'024;

}  // namespace

TEST_CASE("seam: a kind with a parameter: it is taken as often as that says") {
  world w;
  int const most_again = GENERATE(0, 1, 3);
  auto const which = bounded_kind(most_again);
  std::vector<task*> all;
  for (int i = 0; i <= most_again; ++i) all.push_back(&granted(w, w.acquire(1, {.which = which.get()})));
  std::size_t const asked = w.server.ran("EVALSHA acquire");
  task& one_more = w.run(w.acquire(1, {.which = which.get()}));
  CHECK(one_more.error == errc::bad_argument);
  CHECK(one_more.text == "held too often");
  CHECK(w.server.ran("EVALSHA acquire") == asked);
  CHECK(w.server.all() == std::set<std::string>{"k/clientA:1=" + std::to_string(most_again + 1)});
  w.await(w.release(*all.back()));
  CHECK(granted(w, w.acquire(1, {.which = which.get()})).trusted(w.now));
  for (task const* one : all) CHECK(one->losses == 0);
  w.finish();
}

TEST_CASE("seam: a kind with a parameter: who waits twice is told when he has it") {
  world w;
  auto const which = bounded_kind(0);
  task& before = granted(w, w.acquire(1, {.which = which.get()}));
  task& waits = w.acquire(2, {.which = which.get()});
  task& again = w.run(w.acquire(2, {.which = which.get()}));
  CHECK_FALSE((waits.done() || again.done()));
  w.run(w.release(before));
  CHECK(waits.granted());
  CHECK(again.error == errc::bad_argument);
  w.finish();
}

TEST_CASE("seam: kinds of equal parameters are one, whichever object names them") {
  world w;
  auto const one = bounded_kind(2), same = bounded_kind(2);
  CHECK(one->same_as(*same));
  task& first = granted(w, w.acquire(1, {.which = one.get()}));
  task& again = granted(w, w.acquire(1, {.which = same.get()}));
  task& next = w.run(w.acquire(2, {.which = same.get()}));
  CHECK_FALSE(next.done());
  w.release(again);
  w.run(w.release(first));
  CHECK(next.granted());
  CHECK(w.snapshot().handed_off == 1);
  w.finish();
}

TEST_CASE("seam: kinds of other parameters are strangers, and keep each other out") {
  world w;
  auto const one = bounded_kind(1), other = bounded_kind(2);
  CHECK_FALSE(one->same_as(*other));
  task& first = granted(w, w.acquire(1, {.which = one.get()}));
  task& same_owner = w.acquire(1, {.which = other.get()});
  task& next = w.run(w.acquire(2, {.which = other.get()}));
  CHECK(same_owner.error == errc::bad_argument);
  CHECK(same_owner.text == "the owner has this name already as a bounded_lock");
  CHECK_FALSE(next.done());
  w.run(w.release(first));
  CHECK(next.granted());
  REQUIRE(w.snapshot().kinds.size() == 1);  // to whoever counts them they are one
  CHECK(w.snapshot().kinds.front().kind == "bounded_lock");
  w.finish();
}

TEST_CASE("seam: a name keeps its kind as long as it is known, and no longer") {
  world w;
  auto which = bounded_kind(1);
  auto const left = which;
  task& held = granted(w, w.acquire(1, {.which = which.get()}));
  auto same = bounded_kind(1);
  auto const never_kept = same;
  task& again = granted(w, w.acquire(1, {.which = same.get()}));
  auto const later = bounded_kind(1);  // by which the holds are ended
  held.which = again.which = later.get();
  which.reset();
  same.reset();
  CHECK(never_kept->kept_by() == 1);
  CHECK(left->kept_by() == 2);
  w.pass(25s);  // it is renewed
  CHECK(w.server.ttl("k") > 20'000);
  w.drop(again);
  w.drop(held).run();
  CHECK(w.server.all().empty());
  for (std::size_t i = 0; i < names_kept_unused; ++i)
    w.drop(granted(w, w.acquire(1, {.name = "n" + std::to_string(i)})));
  w.run();
  CHECK(left->kept_by() == 1);
  w.finish();
}

TEST_CASE("sweep: seam: a kind with a parameter") {
  auto const which = bounded_kind(1), same = bounded_kind(1);
  sweep({.play = [&](world& w) {
    task& a = w.await(w.acquire(1, {.which = which.get()}));
    task& again = w.await(w.acquire(1, {.which = same.get()}));
    task& b = w.acquire(2, {.direct = true, .which = same.get()});
    if (a.trusted(w.now) && again.trusted(w.now)) {
      task& too_often = w.await(w.acquire(1, {.which = which.get()}));
      w.expect(too_often.error == errc::bad_argument || !a.trusted(w.now), "as often as it may");
    }
    for (task* held : {&again, &a})
      if (held->granted()) w.release(*held);
    w.await(b);
    w.expect(b.granted(), "the one who waits");
  }});
}
