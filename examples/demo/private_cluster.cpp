#include "private_cluster.hpp"

#include "redis.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <thread>

namespace demo {

namespace {

constexpr std::size_t master_count = 3;
constexpr std::chrono::seconds ready_limit(20);

}  // namespace

private_cluster::private_cluster(bool with_replicas, int max_clients) {
  while (servers_.size() < master_count * (with_replicas ? 2 : 1)) add_server(with_replicas, max_clients);
  auto const command = "redis-cli --cluster create" + addresses_ + " --cluster-replicas " +
                       (with_replicas ? "1" : "0") + " --cluster-yes > /dev/null";
  if (std::system(command.c_str()) != 0) throw std::runtime_error("redis-cli has made no cluster");
  wait_until_ready(with_replicas);
}

void private_cluster::add_server(bool with_replicas, int max_clients) {
  auto const port = std::to_string(free_port());
  std::vector<std::string> words{
      "--bind", "127.0.0.1", "--port", port, "--cluster-enabled", "yes", "--cluster-port", std::to_string(free_port())};
  // A dead master is replaced in seconds, and no replica waits for company before it is filled.
  if (with_replicas) words.insert(words.end(), {"--cluster-node-timeout", "1000", "--repl-diskless-sync-delay", "0"});
  servers_.push_back(std::make_unique<private_server>(max_clients, words));
  addresses_ += " 127.0.0.1:" + port;
  uri_ += (servers_.size() == 1 ? "" : ",") + ("127.0.0.1:" + port);
}

// They have been told of each other, and may not have heard it yet.
void private_cluster::wait_until_ready(bool with_replicas) const {
  auto const deadline = std::chrono::steady_clock::now() + ready_limit;
  for (auto const& master : masters()) {
    redis connection(master);
    auto const ready = [&] {
      bool const filled = !with_replicas || connection.replication().find("state=online") != std::string::npos;
      return filled && connection.knows_every_slot();
    };
    while (!ready()) {
      if (std::chrono::steady_clock::now() > deadline) throw std::runtime_error("the cluster is not ready in time");
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }
}

std::vector<std::string> private_cluster::masters() const {
  std::vector<std::string> sockets;
  for (std::size_t i = 0; i < master_count; ++i)
    if (servers_[i]->runs()) sockets.push_back(servers_[i]->socket_path());
  return sockets;
}

void private_cluster::kill_master_of(char const* key) {
  for (std::size_t i = 0; i < master_count; ++i)
    if (servers_[i]->runs() && redis(servers_[i]->socket_path()).serves(key)) return servers_[i]->kill();
  throw std::runtime_error(std::string("no master has ") + key);
}

}  // namespace demo
