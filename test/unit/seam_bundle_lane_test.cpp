// A bundle of a blocked caller goes by the direct lane, as one request does: nobody else writes it or reads its answer.
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

struct lane_world : world {
  explicit lane_world(config settings = seen_by_the_server(), std::size_t clients = 1) : world(settings, clients) {
    warm_up(*this, true);
    pass(100ms);
    server.log.clear();
  }
  bool lent() const { return nodes::lanes_lent(*this) > 0; }
};

}  // namespace

TEST_CASE("seam: bundle lane: a blocked caller's bundle and its releases go by the lane, one call each") {
  lane_world w;
  auto const all = bundles::once(w, {"a", "b", "c"}, {.direct = true});
  CHECK(w.lent());
  w.deafen(role::shared);
  bundles::granted(w, all);
  CHECK_FALSE(w.lent());
  CHECK(w.server.ran("EVALSHA acquire_all a ") + w.server.ran("EVAL acquire_all a ") == 1);
  auto const back = bundles::await(w, bundles::release(w, all, true));
  CHECK(w.server.ran("EVALSHA release a ") == 1);
  CHECK(w.server.ran("EVALSHA release") == 1);
  for (task const* one : back) CHECK_FALSE(one->error);
  CHECK(w.server.all().empty());
  w.deafen(role::shared, false);
  w.finish();
}

TEST_CASE("seam: bundle lane: nobody takes a turn for it") {
  lane_world w;
  auto const all = bundles::once(w, {"a", "b"}, {.direct = true});
  CHECK(w.step());  // the server runs it
  CHECK(w.step());  // the borrower reads, perhaps for the text of the script
  while (!all[0]->done()) REQUIRE(w.step());
  CHECK_FALSE(w.step());  // no turn is posted
  auto const back = bundles::release(w, all, true);
  CHECK(w.step());
  CHECK(w.step());
  CHECK(back[1]->done());
  CHECK_FALSE(w.step());
  w.finish();
}

TEST_CASE("seam: bundle lane: one busy member keeps the whole bundle from being granted") {
  lane_world w;
  w.server.stranger_takes("b", stranger, 20'000);
  auto const all = bundles::await(w, bundles::once(w, {"a", "b", "c"}, {.direct = true}));
  CHECK((all[1]->busy() && !all[1]->untried));
  CHECK((all[0]->untried && all[2]->untried));
  CHECK(w.server.all() == std::set<std::string>{"b/stranger:1=1"});
  w.finish();
}

TEST_CASE("seam: bundle lane: an unknown script goes once more, whole, by the same borrower") {
  lane_world w;
  w.server.flush_scripts();
  w.deafen(role::shared);
  auto const all = bundles::granted(w, bundles::once(w, {"a", "b", "c"}, {.direct = true}));
  CHECK(w.server.ran("EVAL acquire_all a ") == 1);
  bundles::await(w, bundles::release(w, all, true));
  CHECK(w.server.all().empty());
  w.deafen(role::shared, false);
  w.finish();
}

TEST_CASE("seam: bundle lane: who left before the text of the script was sent is not asked for") {
  lane_world w;
  w.server.flush_scripts();
  auto const all = bundles::once(w, {"a", "b"}, {.direct = true});
  w.mute(role::direct).run();
  w.cancel(*all[1]);  // of the bundle's second
  w.mute(role::direct, false);
  bundles::await(w, all);
  w.run();
  CHECK(all[0]->granted());
  CHECK_FALSE(w.server.exists("b"));
  CHECK(w.server.ran("EVAL acquire_all") == 0);
  w.finish();
}

TEST_CASE("seam: bundle lane: while it is under way others go by the shared connection, names of its own behind it") {
  lane_world w;
  w.deafen(role::direct);
  auto const all = bundles::once(w, {"a", "b"}, {.direct = true});
  task& other = granted(w, w.acquire(2, {.name = "x", .direct = true}));
  task& same = w.run(w.acquire(1, {.name = "b", .direct = true}));
  CHECK(other.granted());
  CHECK_FALSE(same.done());
  w.deafen(role::direct, false);
  bundles::granted(w, all);
  granted(w, same);
  CHECK(w.server.count("b", w.field(1)) == 2);
  w.finish();
}

TEST_CASE("seam: bundle lane: a member whose owner has something under way goes behind that, the others at once") {
  lane_world w;
  w.deafen(role::shared);
  task& before = w.acquire(1, {.name = "b"});
  auto const all = bundles::once(w, {"a", "b", "c"}, {.direct = true});
  CHECK(w.lent());
  bundles::granted(w, {all[0], all[2]});
  CHECK(w.server.ran("EVALSHA acquire_all a ") + w.server.ran("EVAL acquire_all a ") == 1);
  CHECK_FALSE(all[1]->done());
  w.deafen(role::shared, false);
  w.await(before, *all[1]);
  CHECK(all[1]->granted());
  w.finish();
}

TEST_CASE("seam: bundle lane: what no one script can do leaves by the shared connection") {
  lane_world w;
  static made_kind const made({.name = "made"});
  bundles::tasks all = bundles::granted(w, bundles::once(w, {"a", "b"}));
  auto const more = bundles::granted(w, bundles::once(w, {"m"}, {.which = &made}, 0));
  all.insert(all.begin() + 1, more.front());
  auto const back = bundles::release(w, all, true);
  CHECK(w.lent());
  bundles::await(w, back);
  CHECK(w.server.ran("EVALSHA release a ") == 1);
  CHECK(w.server.ran("EVALSHA made_release m") == 1);
  CHECK(w.server.all().empty());
  w.finish();
}

TEST_CASE("seam: bundle lane: a release for which somebody waits is a hand-off, and goes apart from the others") {
  for (bool const first : {false, true}) {
    lane_world w;
    auto const all = bundles::granted(w, bundles::once(w, {"a", "b", "c"}));
    task& next = w.run(w.acquire(2, {.name = first ? "a" : "b"}));
    CHECK_FALSE(next.done());
    auto const back = bundles::release(w, all, true);
    w.run();
    bundles::await(w, back);
    CHECK(next.granted());
    for (task const* one : back) CHECK_FALSE(one->error);
    CHECK(w.server.all().size() == 1);
    w.release(next);
    w.finish();
  }
}

TEST_CASE("seam: bundle lane: a release that becomes a hand-off when it leaves goes apart from the others") {
  for (char const* const name : {"a", "b", "c"}) {
    lane_world w;
    auto const all = bundles::granted(w, bundles::once(w, {"a", "b", "c"}));
    task& next = w.once(2, {.name = name});  // its try stands in the outbox
    auto const back = bundles::release(w, all, true);
    CHECK(w.lent());
    bundles::await(w, back);
    granted(w, next);
    for (task const* one : back) CHECK_FALSE(one->error);
    CHECK(w.server.all() == std::set<std::string>{std::string(name) + "/" + w.field(2) + "=1"});
    CHECK(w.server.ran("EVALSHA hand_off") + w.server.ran("EVAL hand_off") == 1);
    CHECK(w.server.ran("EVALSHA release") == 1);
    w.release(next);
    w.finish();
  }
}

TEST_CASE(
    "seam: bundle lane: a borrower who does not come back loses the lane, and the bundle is resolved as a whole") {
  config settings = patient();
  settings.timeout = 3'000ms;
  lane_world w(settings);
  w.borrower_stuck = true;
  auto const all = bundles::once(w, {"a", "b"}, {.direct = true});
  w.pass(2'000ms);
  CHECK_FALSE(all[0]->done());
  w.pass(1'500ms);
  w.borrower_stuck = false;
  bundles::granted(w, all);
  CHECK(w.snapshot().kills == 1);
  CHECK(w.server.count("a", w.field(1)) == 1);
  CHECK(w.server.count("b", w.field(1)) == 1);
  w.finish();
}

TEST_CASE("seam: bundle lane: a copy that was left behind on it is killed before the bundle goes again") {
  lane_world w(patient());
  bundles::tasks all;
  leave_unread(w, role::direct, [&] { all = bundles::once(w, {"a", "b"}, {.direct = true}); });
  bundles::granted(w, all);
  CHECK(w.snapshot().kills == 1);
  bundles::await(w, bundles::release(w, all, true));
  CHECK(w.server.all().empty());
  w.finish();
}

TEST_CASE("seam: bundle lane: no more than a call may take goes by it") {
  lane_world w;
  std::vector<std::string> many;
  for (int i = 0; i < 60; ++i) many.push_back("n" + std::to_string(i));
  auto const all = bundles::granted(w, bundles::once(w, many, {.direct = true}));
  CHECK(w.server.ran("EVAL acquire_all") + w.server.ran("EVALSHA acquire_all") >= 2);
  bundles::await(w, bundles::release(w, all, true));
  CHECK(w.server.ran("EVALSHA release") == 2);
  CHECK(w.server.all().empty());
  w.finish();
}

TEST_CASE("seam: bundle lane: the client closes while it is lent") {
  lane_world w;
  w.deafen(role::direct);
  auto const all = bundles::once(w, {"a", "b"}, {.direct = true});
  w.close();
  for (task const* one : all) CHECK(one->error == errc::closed);
  w.deafen(role::direct, false).run();
  w.finish();
}

namespace {

// Two clients, whose bundles meet.
void take_and_give_back(world& w) {
  auto const all = bundles::once(w, {"k", "a", "b"}, {.direct = true});
  auto const theirs = bundles::once(w, {"b", "k"}, {.direct = true, .client = 1}, 8, 2);
  bundles::await(w, all);
  bundles::await(w, theirs);
  task& waits = w.acquire(3, {.name = "a", .wait = 2'000ms});
  bundles::await(w, bundles::release(w, bundles::held(all), true));
  w.await(waits);
  if (waits.granted()) w.drop(waits);
  bundles::await(w, bundles::release(w, bundles::held(theirs), true));
  auto const again = bundles::await(w, bundles::once(w, {"b", "a"}, {.direct = true}, 9));
  for (task* const one : bundles::held(again)) w.drop(*one);
}

void warm_and_play(world& w) {
  for (std::size_t const client : {0u, 1u}) {
    task& first = w.await(w.acquire(99, {.name = "warm", .direct = true, .client = client}));
    if (first.granted()) w.drop(first);
    w.pass(100ms);
  }
  take_and_give_back(w);
}

}  // namespace

TEST_CASE("sweep: seam: bundle lane: links lost") { sweep_losses({.play = warm_and_play, .clients = 2}); }

TEST_CASE("sweep: seam: bundle lane: calls cancelled") { sweep_cancels({.play = warm_and_play, .clients = 2}); }

TEST_CASE("sweep: seam: bundle lane: the server restarted") { sweep_restarts({.play = warm_and_play, .clients = 2}); }

TEST_CASE("sweep: seam: bundle lane: slots moved") { sweep_moves({.play = warm_and_play, .clients = 2}); }
