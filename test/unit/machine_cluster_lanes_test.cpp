// Blocked callers of a cluster: a direct lane to each node whose names they ask for.
#include <support/catch.hpp>
#include <support/unit/stories.hpp>
#include <support/unit/sweep.hpp>
#include <support/unit/topologies.hpp>

using namespace latchkey;
using namespace latchkey::test;
using namespace std::chrono_literals;

namespace machine_cluster_lanes {

namespace {

// Both nodes have a lane, and one has `there`.
struct lanes : cluster {
  explicit lanes() {
    nodes::move(w, "there", 1);
    for (auto const* name : {"here", "there"}) blocked(name);
    w.run();
  }
  void blocked(std::string const& name) {
    auto& held = w.await(w.acquire(9, {.name = name, .direct = true}));
    w.await(w.release(held, true));
  }
};

}  // namespace

TEST_CASE("cluster: callers who ask for names of two nodes borrow a lane each", "[unit][machine][cluster]") {
  lanes c;
  auto& here = c.w.acquire(1, {.direct = true});
  auto& there = c.w.acquire(2, {.name = "there", .direct = true});
  CHECK(nodes::lanes_lent(c.w) == 2);
  auto& third = c.w.acquire(3, {.name = "third", .direct = true});  // the first one's node, whose lane is lent
  CHECK(nodes::lanes_lent(c.w) == 2);
  for (task* one : {&here, &there, &third}) {
    c.w.await(*one);
    CHECK(one->granted());
  }
  CHECK(nodes::lanes_lent(c.w) == 0);
  CHECK(c.first.count("k", c.w.field(1)) == 1);
  CHECK(c.second.count("there", c.w.field(2)) == 1);
  auto& released = c.w.release(there, true);
  CHECK(nodes::lanes_lent(c.w) == 1);
  c.w.await(released);
  CHECK_FALSE(c.second.exists("there"));
  c.w.await(c.w.release(here));
  c.w.await(c.w.release(third));
  c.w.finish();
}

TEST_CASE("cluster: who connects first has a lane for the first call", "[unit][machine][cluster]") {
  cluster c;
  auto& connects = c.w.connect(5s);
  c.w.await(connects);
  CHECK(connects.yes);
  auto& held = c.w.acquire(1, {.direct = true});
  CHECK(nodes::lanes_lent(c.w) == 1);
  c.w.await(held);
  c.w.finish();
}

TEST_CASE("cluster: whoever connects wants any node, and waits for none that is away", "[unit][machine][cluster]") {
  bool const silent = GENERATE(false, true), none_is_up = GENERATE(false, true), second = GENERATE(false, true);
  cluster c;
  nodes::move(c.w, "there", 1);
  for (auto const* name : {"k", "there"}) c.w.await(c.w.release(c.w.await(c.w.acquire(1, {.name = name}))));
  c.w.pass(120s);  // nothing that was released there lately asks for it
  c.w.only_host = second ? "node1" : "node0";
  c.w.nobody_answers = silent;
  if (!silent) c.w.unreachable = "Connection refused";
  if (!second || none_is_up) c.first.restart(true);
  if (second || none_is_up) c.second.restart(true);
  auto const before = c.w.now;
  CHECK(c.w.await(c.w.connect(1s)).yes);
  CHECK(c.w.now - before <= 500ms);
  CHECK(c.w.await(c.w.acquire(2, {.name = second ? "k" : "there"})).granted());
}

TEST_CASE("cluster: whoever connects is not kept by a node that runs nothing", "[unit][machine][cluster]") {
  bool const second = GENERATE(false, true);
  cluster c;
  nodes::move(c.w, "there", 1);
  for (auto const* name : {"k", "there"}) c.w.await(c.w.release(c.w.await(c.w.acquire(1, {.name = name}))));
  (second ? c.second : c.first).refuse("EVALSHA", "BUSY Redis is busy running a script", -1);
  auto const before = c.w.now;
  CHECK(c.w.await(c.w.connect(1s)).yes);
  CHECK(c.w.now - before <= 500ms);
}

TEST_CASE("cluster: MOVED and ASK on a lane are followed on shared connections", "[unit][machine][cluster]") {
  for (bool const whole : {true, false}) {
    lanes c;
    whole ? nodes::move(c.w, "k", 1) : nodes::begin_move(c.w, "k", 1);
    auto const before = c.w.now;
    auto& held = c.w.acquire(1, {.direct = true});
    CHECK(nodes::lanes_lent(c.w) == 1);
    c.w.await(held);
    CHECK(c.w.now == before);
    CHECK(nodes::lanes_lent(c.w) == 0);
    CHECK(c.w.snapshot().redirected == 1);
    CHECK(c.second.ran("ASKING") == (whole ? 0 : 1));
    CHECK(c.second.count("k", c.w.field(1)) == 1);
    c.w.await(c.w.release(held, true));
    CHECK_FALSE(c.second.exists("k"));
    c.w.finish();
  }
}

TEST_CASE("cluster: what a lost lane left behind is seen to at its node alone", "[unit][machine][cluster]") {
  lanes c;
  c.w.faulty = true;
  c.w.deafen(role::direct);  // of the first node, which was opened first
  auto& waits = c.w.acquire(1, {.direct = true});
  auto& other = c.w.acquire(2, {.name = "there", .direct = true});
  CHECK(nodes::lanes_lent(c.w) == 2);
  granted(c.w, other);
  CHECK_FALSE(waits.done());
  c.w.lose(role::direct, fate::late);
  granted(c.w, waits);
  CHECK(c.first.ran("CLIENT KILL") == 1);
  CHECK(c.second.ran("CLIENT KILL") == 0);
  CHECK(c.first.count("k", c.w.field(1)) == 1);
  c.w.finish();
}

TEST_CASE("cluster: a caller whose lane ends with its node's mastership is asked for at the next one",
          "[unit][machine][cluster]") {
  for (bool const gone : {true, false}) {
    lanes c;
    c.w.faulty = true;
    c.w.deafen(role::direct);
    auto& waits = c.w.acquire(1, {.direct = true});
    CHECK(nodes::lanes_lent(c.w) == 1);
    auto& next = c.w.add_server();
    next.redis.data = c.first.redis.data;
    nodes::take_over(c.w, 0, 2, gone);
    granted(c.w, waits);
    CHECK(nodes::lanes_lent(c.w) == 0);
    CHECK(next.count("k", c.w.field(1)) == 1);
    auto& again = c.w.await(c.w.acquire(3, {.name = "third", .direct = true}));
    c.w.await(c.w.release(again));
    c.w.run();
    auto& lent = c.w.acquire(3, {.name = "third", .direct = true});
    CHECK(nodes::lanes_lent(c.w) == 1);  // there is a lane there, too
    c.w.await(lent);
    c.w.finish();
  }
}

TEST_CASE("cluster: connections to nodes that only lanes use are not closed as idle", "[unit][machine][cluster]") {
  lanes c;
  int const opened = c.w.opened;
  for (int i = 0; i < 40; ++i)
    for (auto const* name : {"here", "there"}) {
      c.blocked(name);
      c.w.pass(1s);
    }
  CHECK(c.w.opened <= opened + 1);  // a scout's, once
  for (std::size_t i = 0; i < 2; ++i) CHECK(nodes::at(c.w, i).connected() == 2);
  c.w.pass(30s);
  CHECK(c.first.connected() + c.second.connected() == 2);  // now they are
}

TEST_CASE("cluster: a hold that was taken by a lane lets its client ask who has the slots",
          "[unit][machine][cluster]") {
  lanes c;
  c.w.pass(60s);  // nothing is wanted any more
  c.blocked("here");
  c.w.run();
  c.w.pass(40s);  // until what was released cannot come back
  int before = nodes::questions(c.w);
  c.w.pass(8s);
  CHECK(nodes::questions(c.w) == before);
  auto& held = c.w.acquire(1, {.name = "here", .lease = 60s, .direct = true});
  CHECK(nodes::lanes_lent(c.w) == 1);
  c.w.await(held);
  before = nodes::questions(c.w);
  c.w.pass(30s);
  CHECK(nodes::questions(c.w) >= before + 5);
  c.w.await(c.w.release(held));
}

TEST_CASE("sweep: a blocked caller of a cluster, and one who waits for it", "[unit][machine][cluster]") {
  scenario const story{.play =
                           [](world& w) {
                             auto& first = w.await(w.acquire(1, {.direct = true}));
                             auto& second = w.acquire(2, {.wait = 20s, .direct = true});
                             w.await(w.release(first, true));
                             w.await(second);
                             w.expect(second.granted(), "it was granted");
                             w.await(w.release(second, true));
                           },
                       .settings = impatient,
                       .how = world::known::by_nodes};
  sweep_losses(story);
  sweep_cancels(story);
  sweep_moves(story);
}

}  // namespace machine_cluster_lanes
