#pragma once

#include "private_server.hpp"

#include <memory>
#include <string>
#include <vector>

namespace demo {

/// A Redis Cluster of three masters for this process alone, without replicas or with one for each of them.
/// It stops with this object, or if this process dies.
class private_cluster {
 public:
  /// Returns when all of it is served, and each replica has what its master has. Takes some seconds.
  /// \throws std::runtime_error if `redis-server` or `redis-cli` is not in the PATH, or if they take too long.
  explicit private_cluster(bool with_replicas, int max_clients = 256);

  /// For `latchkey::client`.
  std::string const& uri() const { return uri_; }
  /// The Unix sockets of the masters that it began with, less those that were killed.
  std::vector<std::string> masters() const;
  /// Kills the master that has this key, as a crash would. Its replica takes its place within some seconds.
  /// \throws std::runtime_error if none has it.
  void kill_master_of(char const* key);

 private:
  void add_server(bool with_replicas, int max_clients);
  void wait_until_ready(bool with_replicas) const;

  std::vector<std::unique_ptr<private_server>> servers_;  // masters first
  std::string addresses_;
  std::string uri_ = "redis-cluster://";
};

}  // namespace demo
