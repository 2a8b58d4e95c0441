#pragma once

#include <support/redis_server.hpp>

#include <cstdint>
#include <string>
#include <string_view>

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

}  // namespace latchkey::test
