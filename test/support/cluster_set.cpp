#include <support/cluster_set.hpp>
#include <wire/cluster.hpp>

#include <algorithm>
#include <stdexcept>
#include <utility>
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

namespace {

constexpr std::size_t masters = 3;
constexpr int first_slot[] = {0, 5461, 10923, detail::slot_count};

bool is_master(redis_server const& one) { return one.admin().ok("ROLE").elements.at(0).text == "master"; }

bool says(redis_server const& one, std::string_view what, std::string_view words) {
  return one.admin().text("CLUSTER", what).find(words) != std::string::npos;
}

// The one hears of the other, and what slots it has if they know each other: at once, and not with a ping some time.
void introduce(redis_server const& one, redis_server const& to) {
  one.admin().ok("CLUSTER", "MEET", "127.0.0.1", to.where().port, bus_port(to));
}

// All of these have heard which slots this one has. A slot that comes back before may be taken from its new owner once
// more, and its keys are deleted: servers believe what they hear late. From Redis 7 on a node says at once that it got
// a slot; an older one says it with its next ping, or to whom it meets.
void await_news(redis_server const& of, std::vector<redis_server*> const& by) {
  auto const me = of.admin().text("CLUSTER", "MYID");
  auto const epoch = [&](redis_server const& seen_by) -> std::uint64_t {
    for (auto const& master : detail::read_cluster(seen_by.admin().text("CLUSTER", "NODES")).masters)
      if (master.id == me) return master.epoch;
    return 0;
  };
  auto const newest = epoch(of);
  for (auto* one : by)
    if (redis_major() < 7 && one != &of) introduce(of, *one);
  must_happen(wait_until([&] {
                return std::all_of(by.begin(), by.end(), [&](auto const* one) { return epoch(*one) >= newest; });
              }),
              "the masters know who has a slot");
}

}  // namespace

cluster_set::cluster_set(std::chrono::milliseconds node_timeout) : node_timeout_(node_timeout) {
  for (auto& one : nodes_) {
    auto options = cluster_node();
    for (char const* const word : {"--repl-diskless-sync-delay", "0"}) options.arguments.push_back(word);
    one = std::make_unique<redis_server>(std::move(options));
  }
  for (std::size_t i = 0; i < masters; ++i) {
    nodes_[i]->admin().ok("CLUSTER", "SET-CONFIG-EPOCH", i + 1);
    give_slots(*nodes_[i], first_slot[i], first_slot[i + 1] - 1);
  }
  // Whoever is told of each other one need not wait for gossip.
  for (std::size_t i = 0; i < nodes_.size(); ++i)
    for (std::size_t j = i + 1; j < nodes_.size(); ++j) introduce(*nodes_[i], *nodes_[j]);
  must_happen(wait_until([&] {
                for (auto const& one : nodes_)
                  if (!says(*one, "INFO", "cluster_known_nodes:6") || says(*one, "NODES", "handshake")) return false;
                return true;
              }),
              "the nodes know each other");
  for (std::size_t i = masters; i < nodes_.size(); ++i) nodes_[i]->admin().ok("CLUSTER", "REPLICATE", id(i - masters));
  for (std::size_t i = 0; i < masters; ++i)
    for (auto const& one : nodes_)
      if (one != nodes_[i]) introduce(*nodes_[i], *one);
  must_happen(wait_until([&] {
                for (std::size_t i = 0; i < masters; ++i)
                  if (nodes_[i]->admin().text("INFO", "replication").find("state=online") == std::string::npos ||
                      nodes_[i + masters]->admin().ok("ROLE").elements.at(3).text != "connected")
                    return false;
                for (auto const& one : nodes_)
                  if (!says(*one, "INFO", "cluster_state:ok") || !says(*one, "INFO", "cluster_slots_ok:16384"))
                    return false;
                return true;
              }),
              "all slots are served");
  for (auto const& one : nodes_) one->admin().ok("CONFIG", "SET", "cluster-node-timeout", node_timeout.count());
}

std::string cluster_set::uri(std::string_view before) const {
  std::string made = "redis-cluster://" + std::string(before);
  for (std::size_t i = 0; i < masters; ++i) made += (i == 0 ? "" : ",") + address(*nodes_[i]);
  return made;
}

std::string cluster_set::id(std::size_t i) const { return nodes_[i]->admin().text("CLUSTER", "MYID"); }

std::size_t cluster_set::owner_of(std::string_view key, std::size_t by) {
  auto const slots = nodes_[by]->admin().ok("CLUSTER", "SLOTS");
  int const slot = detail::slot_of(key);
  for (auto const& range : slots.elements) {
    if (slot < range.elements.at(0).integer || slot > range.elements.at(1).integer) continue;
    auto const port = range.elements.at(2).elements.at(1).integer;
    for (std::size_t i = 0; i < nodes_.size(); ++i)
      if (nodes_[i]->where().port == port) return i;
  }
  throw std::runtime_error("nobody has the slot");
}

bool cluster_set::serves(std::size_t i, std::string_view key) {
  return !nodes_[i]->admin().command("EXISTS", key).is_error();
}

std::string cluster_set::name_on(std::size_t master) {
  for (;;) {
    std::string made = new_name() + std::to_string(++named_);
    int const slot = detail::slot_of(made);
    if (slot >= first_slot[master] && slot < first_slot[master + 1]) return made;
  }
}

std::size_t cluster_set::follower(std::size_t one, std::size_t other) {
  std::size_t found = one;
  must_happen(wait_until([&] {
                for (auto const& [master, replica] : {std::pair(one, other), std::pair(other, one)}) {
                  found = replica;
                  auto const leads = nodes_[master]->admin().ok("ROLE").elements;
                  auto const follows = nodes_[replica]->admin().ok("ROLE").elements;
                  if (leads.at(0).text == "master" && follows.at(0).text == "slave" &&
                      follows.at(3).text == "connected" && follows.at(4).integer >= leads.at(1).integer)
                    return true;
                }
                return false;
              }),
              "one of two follows the other");
  return found;
}

void cluster_set::cut_replication(std::size_t replica) { test::cut_replication(*nodes_[replica]); }

void cluster_set::fail_over(std::size_t replica, std::string_view how) {
  // For so long a node takes the votes of its last election for those of the next, leads with the epoch of that one,
  // and is followed by nobody (Redis 7.0.15).
  auto const votes_last = 2 * std::max<std::chrono::milliseconds>(2 * node_timeout_, std::chrono::seconds(2));
  wait_until([&] { return clock::now() > elected_[replica] + votes_last; }, votes_last);
  // It may have to be asked again: it hears of its offset, and of votes, in vain or too late.
  must_happen(wait_until([&] {
                auto admin = nodes_[replica]->admin();
                how.empty() ? admin.command("CLUSTER", "FAILOVER") : admin.command("CLUSTER", "FAILOVER", how);
                stopwatch time;
                while (time.passed() < std::chrono::seconds(1))
                  if (is_master(*nodes_[replica])) return true;
                return false;
              }),
              "a replica takes over");
  elected_[replica] = clock::now();
}

void cluster_set::await_master(std::size_t replica) {
  must_happen(wait_until([&] { return is_master(*nodes_[replica]); }), "a replica takes over");
}

void cluster_set::replicated() {
  for (auto const& one : nodes_)
    if (one->admin().ok("ROLE").elements.at(0).text == "master") await_replication(*one);
}

void cluster_set::begin_move(std::string_view key, std::size_t from, std::size_t to) {
  int const slot = detail::slot_of(key);
  nodes_[to]->admin().ok("CLUSTER", "SETSLOT", slot, "IMPORTING", id(from));
  nodes_[from]->admin().ok("CLUSTER", "SETSLOT", slot, "MIGRATING", id(to));
}

void cluster_set::move(std::string_view key, std::size_t from, std::size_t to) {
  nodes_[from]->admin().ok("MIGRATE", "127.0.0.1", nodes_[to]->where().port, key, 0, 5'000);
}

void cluster_set::move_all(std::string_view key, std::size_t from, std::size_t to) {
  auto source = nodes_[from]->admin();
  for (;;) {
    auto const keys = source.ok("CLUSTER", "GETKEYSINSLOT", int{detail::slot_of(key)}, 100).elements;
    if (keys.empty()) return;
    for (auto const& one : keys) move(one.text, from, to);
  }
}

void cluster_set::end_move(std::string_view key, std::size_t from, std::size_t to, std::array<std::size_t, 3> all) {
  int const slot = detail::slot_of(key);
  std::string const new_owner = id(to);
  std::vector<redis_server*> told;
  for (std::size_t i : {to, from, all[0], all[1], all[2]}) told.push_back(nodes_[i].get());
  for (auto* one : told) one->admin().ok("CLUSTER", "SETSLOT", slot, "NODE", new_owner);
  await_news(*nodes_[to], told);
}

}  // namespace latchkey::test
