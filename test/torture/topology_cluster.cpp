#include <support/cluster_set.hpp>
#include <support/patience.hpp>
#include <torture/history.hpp>
#include <torture/topology.hpp>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <thread>
#include <utility>

namespace latchkey::torture {

namespace in_a_cluster {

using test::must_happen;

constexpr std::size_t shards = 3, nodes = 6;
// Else a busy machine looks like a dead server. Not longer: a replica waits four times as long before it stands again.
constexpr milliseconds patient{1'500};

class nodes_of_three final : public topology {
 public:
  explicit nodes_of_three(std::vector<std::string> names) : names_(std::move(names)), set_(patient) { heal(); }

  std::string uri() const override { return set_.uri(); }

  std::vector<mishap> const& mishaps_by_weight() const override {
    using enum mishap;
    static std::vector<mishap> const all{asked, asked, asked,  asked,   asked, asked, asked, asked, forced, forced,
                                         taken, taken, killed, stopped, cut,   cut,   moved, links, paused};
    return all;
  }

  // Each shard has its turn, so that the others are well.
  void strike(mishap what, simulation::dice& by) override {
    for (std::size_t i = 0; i < shards; ++i)
      if (is_replica(masters_[i])) ++uninvited_, heal();
    auto const shard = turn_++ % shards;
    auto const master = masters_[shard], replica = replica_of(shard);
    if (what == mishap::links) return static_cast<void>(set_.node(master).admin().kill_clients("name=torture"));
    if (what == mishap::moved) return move_slot(by);
    if (what == mishap::paused) return pause_for(set_.node(master), milliseconds(by.between(50, 800)));
    switch (what) {
      case mishap::forced: set_.fail_over(replica, "FORCE"); break;
      case mishap::taken: take_over(replica); break;
      case mishap::killed: kill(master, replica); break;
      case mishap::stopped:
        count_as_dead_after(dead_after);
        set_.node(master).pause();
        set_.await_master(replica);
        std::this_thread::sleep_for(milliseconds(by.between(0, 300)));
        set_.node(master).resume();
        break;
      case mishap::cut:
        set_.cut_replication(replica);
        std::this_thread::sleep_for(milliseconds(by.between(20, 400)));
        by.one_in(3) ? kill(master, replica) : set_.fail_over(replica, "FORCE");
        break;
      default: set_.fail_over(replica);
    }
    heal();
    uninvited_ += masters_[shard] != replica;
  }

  void heal() override {
    for (std::size_t i = 0; i < nodes; ++i) {
      auto& one = set_.node(i);
      one.pid() > 0 ? one.resume() : start(one);
      one.admin().ok("CONFIG", "SET", "masterauth", "");
    }
    count_as_dead_after(patient);
    for (std::size_t i = 0; i < shards; ++i) masters_[i] = i + i + shards - set_.follower(i, i + shards);
    must_happen(look_until(
                    [&] {
                      for (std::size_t i = 0; i < nodes; ++i)
                        if (!sees_all(i)) return false;
                      return true;
                    },
                    2 * test::patience),
                "all nodes see all others");
    if (!moving_.empty()) finish_move();
  }

  std::vector<test::redis_server*> masters() override {
    std::vector<test::redis_server*> made;
    for (auto const one : masters_) made.push_back(&set_.node(one));
    return made;
  }

  std::map<std::string, std::string> logs() override {
    std::map<std::string, std::string> made;
    for (std::size_t i = 0; i < nodes; ++i) made[name_of_log(set_.node(i))] = set_.node(i).log();
    return made;
  }

 private:
  std::size_t replica_of(std::size_t shard) const { return shard + shard + shards - masters_[shard]; }
  bool is_replica(std::size_t node) { return set_.node(node).admin().ok("ROLE").elements.at(0).text != "master"; }

  void count_as_dead_after(milliseconds limit) {
    for (std::size_t i = 0; i < nodes; ++i)
      set_.node(i).admin().ok("CONFIG", "SET", "cluster-node-timeout", limit.count());
  }

  static void start(test::redis_server& one) {
    one.start();
    auto admin = one.admin();
    admin.ok("CONFIG", "SET", "cluster-node-timeout", patient.count());
    admin.ok("CONFIG", "SET", "repl-diskless-sync-delay", 0);
  }

  void kill(std::size_t master, std::size_t replica) {
    count_as_dead_after(dead_after);
    set_.node(master).kill();
    set_.await_master(replica);
    start(set_.node(master));
  }

  // It makes up an epoch. If that is another master's, as it has not heard of that yet, and is of the same slots, both
  // have them for a while.
  void take_over(std::size_t replica) {
    must_happen(look_until([&] { return epoch_seen_by(replica) == newest_epoch(); }, test::patience),
                "a replica knows the newest epoch");
    set_.fail_over(replica, "TAKEOVER");
  }

  int epoch_seen_by(std::size_t node) {
    std::string_view constexpr before = "cluster_current_epoch:";
    auto const told = set_.node(node).admin().text("CLUSTER", "INFO");
    return std::stoi(told.substr(told.find(before) + before.size()));
  }

  int newest_epoch() {
    int newest = 0;
    for (std::size_t i = 0; i < nodes; ++i) newest = std::max(newest, epoch_seen_by(i));
    return newest;
  }

  // It takes commands, counts nobody as failed and three as masters with slots.
  bool sees_all(std::size_t node) {
    auto admin = set_.node(node).admin();
    if (admin.text("CLUSTER", "INFO").find("cluster_state:ok") == std::string::npos) return false;
    auto const seen = admin.text("CLUSTER", "NODES");
    if (seen.find("fail") != seen.npos) return false;
    std::size_t count = 0;
    for (auto at = seen.find("master"); at != seen.npos; at = seen.find("master", at + 1)) ++count;
    return count == shards;
  }

  void move_slot(simulation::dice& by) {
    moving_ = names_[by.below(names_.size())];
    from_ = set_.owner_of(moving_, masters_[0]);
    do to_ = masters_[by.below(shards)];
    while (to_ == from_);
    set_.begin_move(moving_, from_, to_);
    std::this_thread::sleep_for(milliseconds(by.between(0, 100)));
    finish_move();
  }

  void finish_move() {
    set_.move_all(moving_, from_, to_);
    set_.end_move(moving_, from_, to_, masters_);
    moving_.clear();
  }

  std::vector<std::string> const names_;
  test::cluster_set set_;
  std::array<std::size_t, shards> masters_ = {0, 1, 2};
  std::size_t turn_ = 0;
  std::string moving_;  // empty: none
  std::size_t from_ = 0, to_ = 0;
};

}  // namespace in_a_cluster

std::unique_ptr<topology> make_cluster(std::vector<std::string> names) {
  return std::make_unique<in_a_cluster::nodes_of_three>(std::move(names));
}

}  // namespace latchkey::torture
