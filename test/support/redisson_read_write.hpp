#pragma once

#include <support/redis_server.hpp>

#include <optional>
#include <string>
#include <utility>

namespace latchkey::test {

// One owner of a read/write lock that is no client of ours: its scripts take the steps of Redisson's, one by one.
class redisson_read_write {
 public:
  redisson_read_write(redis_server const& server, std::string name, int thread = 57)
      : admin_(server.admin()), name_(std::move(name)), owner_(id + std::to_string(thread)) {}

  // Empty: granted. Else the time to live.
  std::optional<std::int64_t> read(std::int64_t lease);
  std::optional<std::int64_t> write(std::int64_t lease);
  // 1: released, 0: still held by somebody. Empty: not its owner.
  std::optional<std::int64_t> unlock_read();
  std::optional<std::int64_t> unlock_write(std::int64_t lease = 30'000);
  // What its watchdog does for a read hold: true if there was one.
  bool renew_read(std::int64_t lease);

  std::string const& owner() const { return owner_; }

 private:
  static constexpr auto id = "0b4f7a3e-0000-4000-8000-000000000001:";
  std::string prefix() const { return name_.find('{') == name_.npos ? "{" + name_ + "}" : name_; }
  std::string stamps() const { return prefix() + ":" + owner_ + ":rwlock_timeout"; }
  std::string channel() const { return "redisson_rwlock:" + prefix(); }

  raw_redis admin_;
  std::string const name_;
  std::string const owner_;
};

}  // namespace latchkey::test
