#include <support/cluster_set.hpp>
#include <support/redis_cluster.hpp>
#include <wire/cluster.hpp>

#include <stdexcept>
#include <utility>
#include <vector>

namespace latchkey::test {
namespace {

constexpr std::size_t masters = 3;
constexpr int first_slot[] = {0, 5461, 10923, detail::slot_count};

std::string bus_port(redis_server const& one) {
  return one.admin().ok("CONFIG", "GET", "cluster-port").elements.at(1).text;
}

bool is_master(redis_server const& one) { return one.admin().ok("ROLE").elements.at(0).text == "master"; }

bool says(redis_server const& one, std::string_view what, std::string_view words) {
  return one.admin().text("CLUSTER", what).find(words) != std::string::npos;
}

}  // namespace

cluster_set::cluster_set(std::chrono::milliseconds node_timeout) {
  for (auto& one : nodes_) one = std::make_unique<redis_server>(cluster_node());
  for (std::size_t i = 0; i < masters; ++i) {
    auto admin = nodes_[i]->admin();
    admin.ok("CLUSTER", "SET-CONFIG-EPOCH", i + 1);
    admin.ok("CLUSTER", "ADDSLOTSRANGE", first_slot[i], first_slot[i + 1] - 1);
  }
  // Whoever is told of each other one need not wait for gossip.
  for (std::size_t i = 0; i < nodes_.size(); ++i)
    for (std::size_t j = i + 1; j < nodes_.size(); ++j)
      nodes_[i]->admin().ok("CLUSTER", "MEET", "127.0.0.1", nodes_[j]->where().port, bus_port(*nodes_[j]));
  must_happen(wait_until([&] {
                for (auto const& one : nodes_)
                  if (!says(*one, "INFO", "cluster_known_nodes:6") || says(*one, "NODES", "handshake")) return false;
                return true;
              }),
              "the nodes know each other");
  for (std::size_t i = masters; i < nodes_.size(); ++i) nodes_[i]->admin().ok("CLUSTER", "REPLICATE", id(i - masters));
  must_happen(wait_until([&] {
                for (std::size_t i = 0; i < masters; ++i)
                  if (nodes_[i]->admin().text("INFO", "replication").find("state=online") == std::string::npos)
                    return false;
                for (auto const& one : nodes_)
                  if (!says(*one, "INFO", "cluster_state:ok") || !says(*one, "INFO", "cluster_slots_ok:16384"))
                    return false;
                return true;
              }),
              "all slots are served");
  for (auto const& one : nodes_) {
    auto admin = one->admin();
    admin.ok("CONFIG", "SET", "cluster-node-timeout", node_timeout.count());
    admin.ok("CONFIG", "SET", "repl-diskless-sync-delay", 0);
  }
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

std::string cluster_set::name_on(std::size_t master) {
  for (;;) {
    std::string made = new_name() + std::to_string(++named_);
    int const slot = detail::slot_of(made);
    if (slot >= first_slot[master] && slot < first_slot[master + 1]) return made;
  }
}

std::size_t cluster_set::follower(std::size_t one, std::size_t other) {
  std::size_t found = one;
  must_happen(
      wait_until([&] {
        for (auto const& [master, replica] : {std::pair(one, other), std::pair(other, one)}) {
          found = replica;
          auto const text = nodes_[master]->admin().text("INFO", "replication");
          if (is_master(*nodes_[master]) && !is_master(*nodes_[replica]) && text.find("state=online") != text.npos)
            return true;
        }
        return false;
      }),
      "one of two follows the other");
  return found;
}

void cluster_set::cut_replication(std::size_t replica) {
  nodes_[replica]->admin().ok("CONFIG", "SET", "masterauth", "wrong");
  nodes_[replica]->admin().ok("CLIENT", "KILL", "TYPE", "master");
}

void cluster_set::fail_over(std::size_t replica, std::string_view how) {
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
  for (std::size_t i : {to, from, all[0], all[1], all[2]})
    nodes_[i]->admin().ok("CLUSTER", "SETSLOT", slot, "NODE", new_owner);
}

}  // namespace latchkey::test
