#pragma once

#include <support/unit/world.hpp>

#include <string>
#include <string_view>

namespace latchkey::test {

using namespace std::chrono_literals;

inline config impatient() {
  config made = seen_by_the_server();
  made.lock_watchdog_timeout = 30s;
  made.timeout = 3s;
  made.connect_timeout = 2s;
  made.retry_delay = 1s;
  return made;
}

// Two nodes; the first has all slots.
struct cluster {
  explicit cluster(std::size_t clients = 1, config const& given = impatient())
      : w(given, clients, world::known::by_nodes), first(w.server), second(w.add_server()) {
    w.resolve_to(w.server);
  }
  // Held, and its key is at the second node already, but not its slot.
  task& held_and_half_moved(how const& options = {}) {
    task& held = w.acquire(1, options);
    w.await(held);
    nodes::begin_move(w, "k", 1);
    nodes::move_keys(w, "k", 1);
    return held;
  }
  world w;
  stepped_server& first;
  stepped_server& second;
};

// A client whose master changes.
struct failover {
  explicit failover(std::size_t clients = 1, config const& given = impatient())
      : w(given, clients, world::known::by_sentinel), next(w.add_server()) {
    w.resolve_to(w.server);
  }
  // The next server has all that the first one has; or what that had a while ago.
  void copy() { next.redis.data = w.server.redis.data; }
  void promote(bool announced = true) { sentinels::promote(w, next, announced); }
  // So many follow whichever is the master, and confirm what they are asked for.
  void replicate(std::size_t many) {
    for (stepped_server* const one : {&w.server, &next}) one->redis.replicas = one->redis.synced_replicas = many;
  }

  world w;
  stepped_server& next;
};

// Behind a sentinel, with replicas that confirm what they are asked for.
struct replicated {
  explicit replicated(int needed, std::size_t replicas = 2, config const& given = impatient())
      : w(with(given, needed), 1, world::known::by_sentinel) {
    w.server.redis.replicas = w.server.redis.synced_replicas = replicas;
  }
  static config with(config made, int needed) {
    made.min_synced_replicas = needed;
    return made;
  }
  std::size_t waits(std::string_view words) { return w.server.ran("WAIT " + std::string(words)); }

  world w;
};

}  // namespace latchkey::test
