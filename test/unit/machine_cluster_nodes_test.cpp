// Whom a client of a cluster asks who has the slots, and under which names it reaches nodes.
#include <support/catch.hpp>
#include <support/unit/topologies.hpp>

#include <algorithm>
#include <string>
#include <vector>

using namespace latchkey;
using namespace latchkey::test;
using namespace std::chrono_literals;

namespace {

config by_tls() {
  config made = impatient();
  made.tls.ca_file = "ca.crt";
  return made;
}

}  // namespace

TEST_CASE("cluster: by TLS nodes are reached by the names that they announce, whatever redirections say",
          "[unit][machine][cluster]") {
  bool const named = GENERATE(true, false);
  cluster c(1, named ? by_tls() : impatient());
  c.w.nodes_announce_names = true;
  nodes::move(c.w, "there", 1);
  std::vector<std::string> whom;
  for (auto const* name : {"k", "there"}) {
    auto& held = c.w.await(c.w.acquire(1, {.name = name}));
    c.w.await(c.w.release(held));
  }
  for (auto const& one : c.w.snapshot().nodes) whom.push_back(one.address);
  std::sort(whom.begin(), whom.end());
  std::string const host = named ? "name" : "node";
  CHECK(whom == std::vector{host + "0:1", host + "1:1"});
  nodes::move(c.w, "k", 1);  // MOVED says node1:1
  auto const before = c.w.now;
  auto& moved = c.w.await(c.w.acquire(1));
  CHECK(c.w.now == before);
  CHECK(c.w.snapshot().nodes.size() == 2);
  c.w.await(c.w.release(moved));
  c.w.finish();
}

TEST_CASE("cluster: clients that know one node at first ask any master later", "[unit][machine][cluster]") {
  constexpr std::size_t clients = 8;
  world w(impatient(), clients, world::known::by_nodes);
  for (std::size_t i = 1; i <= 3; ++i) {
    w.add_server();
    nodes::move(w, "name" + std::to_string(i), i);
  }
  w.resolve_to(w.server);
  auto const ask = [&] {
    for (std::size_t i = 0; i < clients; ++i) {
      auto& held = w.await(w.acquire(1, {.client = i}));
      w.await(w.release(held));
    }
  };
  ask();
  CHECK(nodes::questions(w) == clients);
  for (auto const* host : {"node1", "node2", "node3"}) CHECK_FALSE(nodes::was_asked(w, host));
  for (int i = 0; i < 20; ++i) {
    w.pass(6s);
    ask();
  }
  for (auto const* host : {"node1", "node2", "node3"}) CHECK(nodes::was_asked(w, host));
  w.finish();
}

// Others have perhaps not heard of it yet.
TEST_CASE("cluster: a node that ends a channel is asked who has its slot", "[unit][machine][cluster]") {
  world w(impatient(), 2, world::known::by_nodes);
  for (std::size_t i = 1; i <= 6; ++i) {
    w.add_server();
    nodes::move(w, "name" + std::to_string(i), i);
  }
  w.resolve_to(w.server);
  nodes::move(w, "k", 1);
  w.await(w.acquire(1));
  w.acquire(2, {.client = 1});
  w.pass(1s);
  CHECK_FALSE(nodes::was_asked(w, "node1"));
  nodes::move(w, "k", 2);
  w.run();
  CHECK(nodes::was_asked(w, "node1"));
}

TEST_CASE("cluster: a node that begins to announce a name keeps the connections that it has",
          "[unit][machine][cluster]") {
  cluster c(1, by_tls());
  nodes::move(c.w, "there", 1);
  auto& here = c.w.acquire(1);
  auto& there = c.w.acquire(2, {.name = "there"});
  c.w.await(here, there);
  c.w.nodes_announce_names = true;
  std::size_t const changes = c.w.noted(event_type::topology_changed), failures = c.w.noted(event_type::connect_failed);
  int const questions = nodes::questions(c.w);
  std::size_t const roles = c.first.ran("ROLE");
  c.w.pass(30s);
  CHECK(c.w.noted(event_type::topology_changed) == changes);
  CHECK(c.w.noted(event_type::connect_failed) == failures);
  CHECK(nodes::questions(c.w) <= questions + 8);
  CHECK(c.first.ran("ROLE") > roles + 3);
  CHECK(c.w.snapshot().nodes.size() == 2);
  c.w.await(c.w.release(here));
  c.w.await(c.w.release(there));
  c.w.pass(40s);  // until that cannot come back
  c.w.finish();
}
