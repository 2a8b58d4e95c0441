#include <support/catch.hpp>
#include <support/patience.hpp>
#include <support/unit/failover_walk.hpp>
#include <wire/cluster.hpp>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace machine_cluster_walk {

using namespace latchkey;
using namespace latchkey::test;

namespace {

constexpr int until_asks_arrive = 300;

// Two shards, between which the slot of `k` moves, and a master that has no slots and hears of all that.
class cluster_walk final : public failover_walk {
 public:
  cluster_walk(std::uint64_t seed, int needed, bool exclusive)
      : failover_walk(seed, needed, exclusive, world::known::by_nodes) {
    w_.add_server();
    w_.add_server();
    for (std::size_t i = 0; i < 2; ++i) {
      watch(nodes::at(w_, i));
      sides_[i].node = i;
    }
  }

 private:
  // Was its master, goes on, and does not know it.
  struct deposed {
    std::size_t node = 0;
    model::keyspace passed_on{};
  };
  struct side {
    std::size_t node = 0;
    std::optional<std::size_t> replica{};  // was its master
    std::optional<deposed> before{};
    model::keyspace copy{};
    bool linked = true;
  };

  stepped_server& master(side const& of) { return nodes::at(w_, of.node); }
  void replicate(side& one) { one.copy = master(one).redis.data; }

  std::string before(stepped_server& one, stepped_server::words const& command) override {
    if (command[0] != "WAIT") return {};
    one.redis.synced_replicas = w_.random(replicas);
    for (side& of : sides_)
      if (&master(of) == &one && (of.linked || w_.random(3) == 0)) {
        of.linked = true;
        replicate(of);
        one.redis.synced_replicas = replicas;
      }
    return {};
  }

  void befall_servers() override {
    side& one = sides_[w_.random(2)];
    switch (w_.random(20)) {
      case 0: return fail_over(one);
      case 1: one.linked = !one.linked; return;
      case 2: return master(one).flush_scripts();
      case 3:
      case 4: return replicate(one);
      case 5:
      case 6: return move_on();
      case 7:
      case 8: return there_and_back(one);
      case 9: return fail_over_twice(one);
      case 10: master(one).run_left_behind(); return;
      case 11:
      case 12: one.linked = false; return;
      case 13: return end_of_deposed(one);
      default: return hear();
    }
  }

  std::size_t any_node() { return w_.random(last_ + 1); }

  void hear() {
    std::size_t const number = any_node();
    for (side& of : sides_)
      if (of.before && of.before->node == number) return end_of_deposed(of);
    w_.random(2) == 0 ? nodes::hear_all(w_, number) : nodes::hear(w_, number, any_node());
  }

  // Who was late to hear that a slot has left the node that is elected would hold on to its claim for ever:
  // docs/topologies.md.
  void elect_unheard() {
    hear_everything();
    hold_back_some();
  }

  void hold_back_some() {
    for (std::size_t i = 0; i <= last_; ++i)
      if (w_.random(2) == 0) nodes::hold_back(w_, i);
  }

  // What waits there for a WAIT is told, and ends with its connection.
  void end_of_deposed(side& of) {
    auto old = std::exchange(of.before, std::nullopt);
    if (!old) return;
    stepped_server& one = nodes::at(w_, old->node);
    if (w_.random(4) == 0) one.restart(true);
    nodes::hear_all(w_, old->node);
    if (lost_more_than_releases(one.redis.data, old->passed_on)) one.hang_up();
  }

  // Nobody has heard of the one between. A WAIT for what was lost ends with its connection.
  void there_and_back(side& of) {
    if (failovers_ >= most_failovers) return;
    if (half_moved_) move_on();
    end_of_deposed(of);
    bool const lost = lost_more_than_releases(master(of).redis.data, of.copy);
    promote_to(master(of), master(of), of.copy);
    elect_unheard();
    nodes::hear_all(w_, of.node);
    nodes::take_over(w_, of.node, of.node, false);
    if (lost || w_.random(2) == 0) master(of).hang_up();
    of.linked = true;
    replicate(of);
  }

  void fail_over_twice(side& of) {
    fail_over(of);
    for (auto i = w_.random(12); i > 0; --i) step();
    fail_over(of);
  }

  // MIGRATE waits for no replica: what moves is taken to be everywhere at once. It begins when all masters have heard
  // of the last move, and what that has sent on by ASK has arrived: docs/topologies.md.
  void move_on() {
    for (side& one : sides_) end_of_deposed(one);
    side const& to = sides_[0].node == nodes::owner_of(w_, detail::slot_of("k")) ? sides_[1] : sides_[0];
    if (!half_moved_) {
      hear_everything();
      for (int i = 0; i < until_asks_arrive && step(); ++i) {
      }
      nodes::begin_move(w_, "k", to.node);
      if (w_.random(2) == 0) nodes::move_keys(w_, "k", to.node);
    } else {
      hold_back_some();
      nodes::move(w_, "k", to.node);
    }
    half_moved_ = !half_moved_;
    for (side& one : sides_) replicate(one);
  }

  // A replica does not know which slots are half moved: docs/topologies.md.
  void fail_over(side& of) {
    if (failovers_ >= most_failovers) return;
    if (half_moved_) move_on();
    end_of_deposed(of);
    bool const back = of.replica && w_.random(3) > 0;
    bool const gone = w_.random(2) == 0;
    std::size_t const next = back ? *of.replica : ++last_;
    stepped_server& one = back ? nodes::at(w_, next) : w_.add_server();
    promote_to(one, master(of), of.copy);
    if (!back) watch(one);
    elect_unheard();
    std::size_t const before = std::exchange(of.node, next);
    gone ? nodes::hear_all(w_, before) : nodes::hold_back(w_, before);
    nodes::take_over(w_, before, next, gone);
    of.replica = before;
    if (!gone) of.before = {before, of.copy};
    if (w_.random(2) == 0) end_of_deposed(of);
    of.linked = true;
    replicate(of);
  }

  void hear_everything() {
    for (side& one : sides_) end_of_deposed(one);
    for (std::size_t i = 0; i <= last_; ++i) nodes::hear_all(w_, i);
  }

  void heal() override {
    if (half_moved_) move_on();
    hear_everything();
    for (side& one : sides_) one.linked = true;
  }

  // What a node has of slots that are not its own is not there.
  std::vector<std::string> ghosts() override {
    std::vector<std::string> made;
    for (side const& of : sides_)
      for (auto const& one : master(of).all())
        if (one.find("/client") != one.npos &&
            nodes::owner_of(w_, detail::slot_of(one.substr(0, one.find('/')))) == of.node)
          made.push_back(one);
    return made;
  }

  stepped_server* master_of(std::string const& name) override {
    return half_moved_ ? nullptr : &nodes::at(w_, nodes::owner_of(w_, detail::slot_of(name)));
  }

  side sides_[2];
  bool half_moved_ = false;
  std::size_t last_ = 2;
};

}  // namespace

TEST_CASE("walk: failovers in a cluster find two holders where one replica has confirmed a grant", "[unit][machine]") {
  if (slowness > 1) return;  // sanitizers look for other faults
  CHECK(finds_two_holders<cluster_walk>(10'000));
}

TEST_CASE("walk: failovers and moves in a cluster, every replica having confirmed each grant", "[unit][machine]") {
  walk_failovers<cluster_walk>(-1);
}

TEST_CASE("walk: failovers and moves in a cluster, one replica having confirmed: all comes to rest",
          "[unit][machine]") {
  walk_failovers<cluster_walk>(0);
}

TEST_CASE("walk: failovers and moves in a cluster, no replica asked: all comes to rest", "[unit][machine]") {
  walk_failovers<cluster_walk>(failover_walk::unasked);
}

}  // namespace machine_cluster_walk
