#include <support/redis_cluster.hpp>
#include <wire/cluster.hpp>

#include <stdexcept>
#include <vector>

namespace latchkey::test {
namespace {

std::string id_of(redis_server const& node) { return node.admin().text("CLUSTER", "MYID"); }

}  // namespace

redis_options cluster_node() {
  return {.tcp = true, .arguments = {"--cluster-enabled", "yes", "--cluster-port", std::to_string(free_port())}};
}

cluster_pair::cluster_pair() : source_(cluster_node()), target_(cluster_node()) {
  std::vector<std::string> all{"CLUSTER", "ADDSLOTS"};
  for (int slot = 0; slot < detail::slot_count; ++slot) all.push_back(std::to_string(slot));
  auto source = at_source(), target = at_target();
  source.send(all);
  if (source.receive().is_error()) throw std::runtime_error("CLUSTER ADDSLOTS was refused");
  source.ok("CLUSTER", "MEET", "127.0.0.1", target_.where().port,
            target.ok("CONFIG", "GET", "cluster-port").elements.at(1).text);
  auto const knows = [](raw_redis& node, redis_server const& other) {
    return node.text("CLUSTER", "NODES").find(id_of(other)) != std::string::npos &&
           node.text("CLUSTER", "INFO").find("cluster_state:ok") != std::string::npos;
  };
  // Only who has slots waits before it says ok; the other one has to have heard of them.
  bool const ready = wait_until([&] {
    return knows(source, target_) && knows(target, source_) &&
           target.text("CLUSTER", "INFO").find("cluster_slots_assigned:16384") != std::string::npos;
  });
  if (!ready) throw std::runtime_error("two nodes of a cluster do not find each other");
}

void cluster_pair::begin_move(std::uint16_t slot) {
  at_target().ok("CLUSTER", "SETSLOT", slot, "IMPORTING", id_of(source_));
  at_source().ok("CLUSTER", "SETSLOT", slot, "MIGRATING", id_of(target_));
}

void cluster_pair::move(std::string_view key) {
  at_source().ok("MIGRATE", "127.0.0.1", target_.where().port, key, 0, 5'000);
}

void cluster_pair::end_move(std::uint16_t slot) {
  at_target().ok("FLUSHALL");
  at_target().ok("CLUSTER", "SETSLOT", slot, "STABLE");
  at_source().ok("CLUSTER", "SETSLOT", slot, "STABLE");
  at_source().ok("FLUSHALL");
}

}  // namespace latchkey::test
