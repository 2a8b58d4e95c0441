#pragma once

#include <support/redis_server.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace latchkey::test {

// A thread of another program that takes a fair lock as Redisson does: same steps, same keys, and a clock of its own.
// It leaves the queue without telling anybody, and evicts without telling anybody.
class redisson_fair {
 public:
  redisson_fair(redis_server const& server, std::string lock, std::string field,
                std::chrono::milliseconds clock_off = {}, std::chrono::milliseconds wait = std::chrono::minutes(5));

  // One attempt of a caller that waits. True: granted; else `hint` says what the server answered.
  bool acquire(std::chrono::milliseconds lease = 30s);
  // The same of a caller that does not wait.
  bool try_once(std::chrono::milliseconds lease = 30s);
  // 1 released, 0 still held, -1 not the owner.
  std::int64_t unlock();
  // What it does when its wait is over.
  void give_up();
  std::int64_t hint() const { return hint_; }

  // Listens from now on, as it does before its second attempt.
  void subscribe();
  // True: a message came within the time.
  bool hear(std::chrono::milliseconds limit);

 private:
  std::int64_t now() const;
  bool answered(raw_redis::reply const& said);

  raw_redis calls_;
  raw_redis messages_;
  std::string const lock_, field_, queue_, scores_, channel_;
  std::chrono::milliseconds const clock_off_, wait_;
  std::int64_t hint_ = 0;
};

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
