#pragma once

#include <support/worlds.hpp>

#include <string>
#include <vector>

namespace latchkey::test {

// The common server with a fair lock that nobody has used before, and a look at its queue.
struct fair_world : common_world {
  distributed_lock fair = own.get_fair_lock(name);

  std::string const queue = "redisson_lock_queue:{" + name + "}";
  std::string const scores = "redisson_lock_timeout:{" + name + "}";
  std::string const channel = "redisson_lock__channel:{" + name + "}";

  // Who waits, in order.
  std::vector<std::string> line() {
    std::vector<std::string> found;
    for (auto const& one : admin.ok("LRANGE", queue, 0, -1).elements) found.push_back(one.text);
    return found;
  }
  // When this waiter counts as dead, by the server's clock; 0: it has no score.
  std::int64_t score(std::string_view waiter) {
    auto const text = admin.text("ZSCORE", scores, waiter);
    return text.empty() ? 0 : std::stoll(text);
  }
  std::int64_t score(owner who) { return score(field(who)); }
  std::int64_t now() {
    auto const time = admin.ok("TIME").elements;
    return std::stoll(time.at(0).text) * 1'000 + std::stoll(time.at(1).text) / 1'000;
  }
  // Puts somebody at the end of the queue who will never say a word.
  void enter(std::string_view waiter, std::chrono::milliseconds alive) {
    admin.ok("RPUSH", queue, waiter);
    admin.ok("ZADD", scores, now() + alive.count(), waiter);
  }
  // The waiter stands in the queue and hears its channel: it tries no more until it is told, or looks again.
  bool listening(std::string const& waiter) {
    return wait_until([&] {
      return admin.ok("PUBSUB", "NUMSUB", channel + ":" + waiter).elements.at(1).integer == 1 && score(waiter) != 0;
    });
  }
  bool listening(owner who) { return listening(field(who)); }
  bool nothing_left() {
    return wait_until([&] { return admin.integer("EXISTS", name, queue, scores) == 0; });
  }
};

}  // namespace latchkey::test
