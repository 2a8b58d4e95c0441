#pragma once

#include <support/redis_server.hpp>

#include <cstdint>
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

}  // namespace latchkey::test
