#pragma once

#include <support/redis_server.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace latchkey::test {

// A server that is a node of a cluster, as yet of itself alone and without slots.
redis_options cluster_node();
// Where other nodes come in.
std::uint16_t bus_port(redis_server const& node);
// These slots, from the first to the last, are this node's.
void give_slots(redis_server const& node, int first, int last);

// A cluster of two, of which one has all slots.
class cluster_pair {
 public:
  // Comes back when both take commands: a new master waits two seconds.
  cluster_pair();

  raw_redis at_source() const { return source_.admin(); }
  raw_redis at_target() const { return target_.admin(); }

  // From here on the slot moves from the source to the target, but no key of it does by itself.
  void begin_move(std::uint16_t slot);
  // The key goes to the target.
  void move(std::string_view key);
  // As before, and both are empty.
  void end_move(std::uint16_t slot);

 private:
  redis_server source_, target_;
};

// Three masters, nodes 0 to 2, each with a replica, nodes 3 to 5, on ports of the loopback interface.
class cluster_set {
 public:
  // Comes back when all take commands. `node_timeout`: how long a node is silent before it counts as failed.
  explicit cluster_set(std::chrono::milliseconds node_timeout = std::chrono::milliseconds(2000));

  // `before`: what stands before the nodes, as `127.0.0.1:1,`.
  std::string uri(std::string_view before = {}) const;
  redis_server& node(std::size_t i) { return *nodes_[i]; }
  std::string id(std::size_t i) const;
  static std::string address(redis_server const& one) { return "127.0.0.1:" + std::to_string(one.where().port); }
  // Which node has the slot of this key, as node `by` sees it.
  std::size_t owner_of(std::string_view key, std::size_t by = 0);
  // This node has the slot of this key, and takes commands.
  bool serves(std::size_t i, std::string_view key);
  // Of this node: a name that is on it, as far as the first slots go.
  std::string name_on(std::size_t master);
  // Which of the two is the replica of the other; waits until it has all that the other has.
  std::size_t follower(std::size_t one, std::size_t other);
  // The replica takes over, with its master's consent.
  // `how`: FORCE or TAKEOVER, without asking it. Waits first until it can be elected once more.
  void fail_over(std::size_t replica, std::string_view how = {});
  // From here on this replica hears nothing of its master, but could still be promoted.
  void cut_replication(std::size_t replica);
  // Returns as soon as this node, a replica so far, has slots.
  void await_master(std::size_t replica);
  // Replicas have what the masters have.
  void replicated();

  // From here on the slot of this key moves, but no key of it does by itself.
  void begin_move(std::string_view key, std::size_t from, std::size_t to);
  // This key goes along.
  void move(std::string_view key, std::size_t from, std::size_t to);
  // All keys that are there go along.
  void move_all(std::string_view key, std::size_t from, std::size_t to);
  // All masters are told, and each has heard it of the new owner.
  void end_move(std::string_view key, std::size_t from, std::size_t to, std::array<std::size_t, 3> all = {0, 1, 2});

 private:
  std::array<std::unique_ptr<redis_server>, 6> nodes_;
  std::chrono::milliseconds const node_timeout_;
  std::array<clock::time_point, 6> elected_{};  // when each was asked to lead
  unsigned named_ = 0;
};

}  // namespace latchkey::test
