#pragma once

#include <interop/support/cells.hpp>
#include <support/redis_server.hpp>

#include <memory>

namespace latchkey::test {

// Three servers (the kinds that are made of several locks use all) and a process of each library.
struct interop_world {
  explicit interop_world(std::chrono::milliseconds watchdog_timeout,
                         std::chrono::milliseconds fair_lock_wait_timeout = 0ms);

  std::vector<std::string> uris() const;
  direction redisson_first() { return {*redisson, *ours}; }
  direction latchkey_first() { return {*ours, *redisson}; }
  // Comes back when somebody waits for this lock of a kind.
  void await_waiter(interop_kind const& kind, std::string const& names);
  // The same for a worker of this process: also when it is Redisson's, which is deaf for a moment after it subscribed.
  void await_waiter(interop_kind const& kind, std::string const& names, peer& waiter, std::string const& worker);

  std::chrono::milliseconds watchdog_timeout;
  std::vector<std::unique_ptr<redis_server>> servers;
  raw_redis admin;
  std::unique_ptr<peer> redisson;
  std::unique_ptr<peer> ours;
};

// One in which something runs out; the watchdogs renew every second.
inline constexpr std::chrono::milliseconds quick_timeout = 3s;

// A watchdog timeout with which no renewal comes in the middle of a history.
inline constexpr std::chrono::milliseconds unrenewed = 10min;

// With Redisson's watchdog timeout of 30 s. Shared by the tests of a file.
interop_world& steady_world();

}  // namespace latchkey::test
