// Who has the slots of a cluster claims them with no greater epoch than is known, since a node was forgotten or since
// the cluster was made anew: docs/topologies.md, "A cluster".
#include <support/catch.hpp>
#include <support/unit/stories.hpp>
#include <support/unit/topologies.hpp>

#include <algorithm>
#include <string>

using namespace latchkey;
using namespace latchkey::test;
using namespace std::chrono_literals;

namespace {

constexpr char const* led_to_second[] = {"a", "b", "c", "d", "k"};

// The second node has the slot of `k`, by a far greater epoch than the first one has.
struct later : cluster {
  explicit later(config const& given = impatient()) : cluster(1, given) {
    for (auto const* name : led_to_second) nodes::move(w, name, 1);
  }
  void lose_second() {
    w.only_host = "node1";
    w.unreachable = "Connection refused";
    second.restart(false);
  }
  void add_slots() {
    for (auto const* name : led_to_second) nodes::add_slot(w, name, 0);
  }
  // ... and nobody names it.
  void forget_second() {
    lose_second();
    nodes::forget(w, 1);
    add_slots();
  }
  void turn(char const* name = "k") {
    auto& held = granted(w, w.acquire(9, {.name = name}));
    w.await(w.release(held));
  }
  std::size_t changes() { return w.noted(event_type::topology_changed); }
};

config with_quarantine() {
  config made = impatient();
  made.failover_quarantine = 20s;
  return made;
}

}  // namespace

TEST_CASE("cluster: the slots of a node that was forgotten are followed without a greater epoch",
          "[unit][machine][cluster]") {
  later c;
  auto& held = granted(c.w, c.w.acquire(1));
  auto& released = granted(c.w, c.w.acquire(2, {.name = "a"}));
  c.w.await(c.w.release(released));
  std::size_t const before = c.changes();
  c.forget_second();
  c.first.set("a", c.w.field(2), 1);
  c.first.expire("a", 30'000);
  auto& waits = c.w.acquire(3, {.name = "b", .wait = 60s});
  c.w.pass(9s);
  CHECK_FALSE(waits.done());
  CHECK(c.changes() == before);
  REQUIRE(c.w.noted(event_type::warning) == 1);
  auto const& told = *std::find_if(c.w.notes.begin(), c.w.notes.end(),
                                   [](auto const& one) { return one.type == event_type::warning; });
  CHECK(told.text.find(" are claimed by node0:1 with epoch 0, and node1:1 had them with epoch ") != told.text.npos);
  CHECK(told.text.starts_with("slots "));
  c.w.pass(3s);
  CHECK(waits.granted());
  CHECK(c.first.count("b", c.w.field(3)) == 1);
  CHECK(c.changes() > before);
  CHECK(c.w.snapshot().switches > 0);
  CHECK(held.losses == 1);
  CHECK_FALSE(c.first.exists("a"));
  CHECK(c.w.noted(event_type::warning) == 1);
}

TEST_CASE("cluster: a node that has what a forgotten one had is in quarantine", "[unit][machine][cluster]") {
  later c(with_quarantine());
  c.turn();
  c.w.pass(30s);
  c.forget_second();
  auto& waits = c.w.acquire(3, {.wait = 60s});
  c.w.pass(25s);
  CHECK_FALSE(waits.done());
  c.w.pass(10s);
  CHECK(waits.granted());
}

TEST_CASE("cluster: one that is made anew at the same places is followed", "[unit][machine][cluster]") {
  bool const shifted = GENERATE(true, false);
  later c;
  c.w.add_server();
  c.turn();
  c.turn("other");
  auto& held = granted(c.w, c.w.acquire(1));
  std::size_t const before = c.w.snapshot().switches;
  nodes::make_anew(c.w, shifted);
  auto& early = c.w.acquire(2, {.name = "a", .wait = 10ms, .lease = 1s});  // MOVED, perhaps
  c.w.pass(15s);
  CHECK(early.done());
  CHECK(held.losses == 1);
  CHECK(c.w.snapshot().switches > before);
  for (auto const* name : {"k", "a", "b", "other"}) c.turn(name);
  // The next failover is known by its epoch, though it is not greater than any of before.
  std::size_t const of_k = shifted ? 2 : 1;
  nodes::take_over(c.w, of_k, 0, true);
  c.w.only_host = "node" + std::to_string(of_k);
  c.w.unreachable = "Connection refused";
  for (auto const* name : {"k", "a", "b"}) {
    granted(c.w, c.w.acquire(3, {.name = name, .wait = 5s}));
    CHECK(c.first.exists(name));
  }
}

TEST_CASE("cluster: where it was made anew nothing begins before the quarantine is over", "[unit][machine][cluster]") {
  bool const shifted = GENERATE(true, false);
  later c(with_quarantine());
  c.turn();
  c.w.pass(30s);
  nodes::make_anew(c.w, shifted);
  c.w.acquire(1, {.name = "other", .wait = 60s});  // so that somebody is asked
  c.w.pass(13s);
  auto& waits = c.w.acquire(3, {.wait = 60s});
  c.w.pass(10s);
  CHECK_FALSE(waits.done());
  c.w.pass(15s);
  CHECK(waits.granted());
}

TEST_CASE("cluster: the slots of a node that is gone, and still named, stay", "[unit][machine][cluster]") {
  later c;
  c.turn();
  c.lose_second();
  c.add_slots();
  std::size_t const before = c.changes();
  auto& waits = c.w.acquire(3, {.wait = 60s});
  c.w.pass(50s);
  CHECK_FALSE(waits.done());
  CHECK(c.changes() == before);
  CHECK(c.w.noted(event_type::warning) == 0);
}

TEST_CASE("cluster: a witness that does not name a node for a while does not lead back", "[unit][machine][cluster]") {
  bool const named = GENERATE(true, false);  // between; else nobody claims its slots for a moment
  later c;
  c.turn();
  std::size_t const before = c.changes();
  c.forget_second();
  auto& waits = c.w.acquire(3, {.wait = 60s});
  for (int i = 0; i < 4; ++i) {
    c.w.pass(9s);
    if (named)
      nodes::remember(c.w, 1);
    else
      for (auto const* name : led_to_second) nodes::uncover(c.w, name);
    c.w.pass(2s);
    nodes::forget(c.w, 1);
    c.add_slots();
  }
  CHECK_FALSE(waits.done());
  CHECK(c.changes() == before);
  CHECK(c.w.noted(event_type::warning) == 1);
}

TEST_CASE("cluster: one answer that does not name a node after a long time does not lead away from it",
          "[unit][machine][cluster]") {
  later c;
  c.turn();
  c.turn("other");
  c.lose_second();
  c.w.await(c.w.acquire(3, {.wait = 1s}));
  c.w.pass(60s);
  nodes::forget(c.w, 1);
  c.add_slots();
  int const at_first = nodes::questions(c.w);
  c.w.await(c.w.ask(detail::query::is_locked, 0, {.name = "other"}));
  c.w.pass(600s);
  int const asked = nodes::questions(c.w);
  CAPTURE(asked - at_first);
  granted(c.w, c.w.acquire(3, {.wait = 60s}));
  CHECK(nodes::questions(c.w) >= asked + 2);
}

TEST_CASE("cluster: a node that serves is not left because nobody names it", "[unit][machine][cluster]") {
  bool const used = GENERATE(true, false);
  later c;
  c.turn();
  auto& other = granted(c.w, c.w.acquire(1, {.name = "other"}));
  auto* const held = used ? &granted(c.w, c.w.acquire(2)) : nullptr;
  std::size_t const before = c.changes();
  c.second.elsewhere = [](auto const&, bool) { return std::string(); };  // it goes on
  nodes::forget(c.w, 1);
  c.add_slots();
  c.w.pass(60s);
  CHECK((c.second.connected() > 0) == used);
  CHECK(c.changes() == before);
  if (held) {
    CHECK(held->losses == 0);
    c.w.await(c.w.release(*held));
  }
  auto& again = granted(c.w, c.w.acquire(2));
  CHECK(c.second.exists("k"));
  CHECK(c.changes() == before);
  c.w.await(c.w.release(again));
  c.w.await(c.w.release(other));
}
