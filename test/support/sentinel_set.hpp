#pragma once

#include <support/redis_server.hpp>

#include <array>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace latchkey::test {

// A sentinel of our own, which ends with this object and with this process however that ends.
class sentinel_process {
 public:
  // Watches a master named `m` at this port, of which `quorum` sentinels have to say that it is down.
  sentinel_process(std::uint16_t master, int quorum, std::vector<std::string> const& more);
  sentinel_process(sentinel_process const&) = delete;
  sentinel_process& operator=(sentinel_process const&) = delete;
  ~sentinel_process();

  std::uint16_t port() const { return port_; }
  raw_redis admin() const { return raw_redis(endpoint{{}, port_}); }
  // The port of the master that it names.
  std::uint16_t master() const;
  void kill();
  void pause();
  void resume();
  std::string log() const;

 private:
  temp_folder folder_;
  std::uint16_t const port_ = free_port();
  pid_t pid_ = -1;
};

// A master, two replicas and three sentinels, on ports of the loopback interface. The master's name is `m`.
class sentinel_set {
 public:
  struct wishes {
    std::chrono::milliseconds down_after{2000};  // a busy machine is not to look like a dead server
    std::vector<std::string> server_arguments{};
    std::vector<std::string> sentinel_lines{};
  };

  // Comes back when all know each other.
  explicit sentinel_set(wishes const& what);
  sentinel_set() : sentinel_set(wishes{}) {}

  // `before`: what stands before the sentinels, as `127.0.0.1:1,`.
  std::string uri(std::string_view before = {}, std::string_view after = "/m") const;
  redis_server& node(std::size_t i) { return *nodes_[i]; }
  sentinel_process& sentinel(std::size_t i) { return *sentinels_[i]; }
  // Which of the nodes this sentinel names, and the first that answers.
  std::size_t named_by(std::size_t sentinel) const { return index_of(sentinels_[sentinel]->master()); }
  std::size_t master();
  // Returns as soon as so many of the sentinels, a majority otherwise, name another one than this.
  void await_successor(std::size_t of, int many = 2);
  // The master and a replica change places, both being well.
  void fail_over();
  // The same, but comes back when a sentinel has begun with it.
  void begin_fail_over(std::size_t leader = 0);
  // This replica hears nothing of its master any more, but could still be promoted.
  void cut_replication(std::size_t replica);
  // As many replicas follow this one.
  void await_replicas(std::size_t of, int many);

 private:
  std::size_t index_of(std::uint16_t port) const;

  std::array<std::unique_ptr<redis_server>, 3> nodes_;
  std::array<std::unique_ptr<sentinel_process>, 3> sentinels_;
};

}  // namespace latchkey::test
