#include <support/redis_cluster.hpp>
#include <wire/cluster.hpp>

#include <stdexcept>
#include <vector>

namespace latchkey::test {
namespace {

constexpr int before_redis_7 = 10'000;  // from a node's port to that for other nodes

std::string id_of(redis_server const& node) { return node.admin().text("CLUSTER", "MYID"); }

bool is_free(int port) {
  try {
    listen_on(endpoint{{}, static_cast<std::uint16_t>(port)});
    return true;
  } catch (std::runtime_error const&) {
    return false;
  }
}

std::uint16_t port_with_one_behind() {
  for (;;) {
    std::uint16_t const port = free_port();
    if (int const other = port + before_redis_7; other <= 0xffff && is_free(other)) return port;
  }
}

}  // namespace

redis_options cluster_node() {
  if (redis_major() < 7)
    return {.tcp = true, .port = port_with_one_behind(), .arguments = {"--cluster-enabled", "yes"}};
  return {.tcp = true, .arguments = {"--cluster-enabled", "yes", "--cluster-port", std::to_string(free_port())}};
}

std::uint16_t bus_port(redis_server const& node) {
  if (redis_major() < 7) return static_cast<std::uint16_t>(node.where().port + before_redis_7);
  return static_cast<std::uint16_t>(std::stoi(node.admin().ok("CONFIG", "GET", "cluster-port").elements.at(1).text));
}

// ADDSLOTSRANGE came with Redis 7.
void give_slots(redis_server const& node, int first, int last) {
  std::vector<std::string> all{"CLUSTER", "ADDSLOTS"};
  for (int slot = first; slot <= last; ++slot) all.push_back(std::to_string(slot));
  auto admin = node.admin();
  admin.send(all);
  if (admin.receive().is_error()) throw std::runtime_error("CLUSTER ADDSLOTS was refused");
}

cluster_pair::cluster_pair() : source_(cluster_node()), target_(cluster_node()) {
  give_slots(source_, 0, detail::slot_count - 1);
  auto source = at_source(), target = at_target();
  source.ok("CLUSTER", "MEET", "127.0.0.1", target_.where().port, bus_port(target_));
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
