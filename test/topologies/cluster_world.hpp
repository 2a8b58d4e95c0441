#pragma once

#include <latchkey/latchkey.hpp>
#include <support/catch.hpp>
#include <support/cluster_set.hpp>
#include <support/configs.hpp>

#include <atomic>
#include <chrono>
#include <future>
#include <optional>
#include <string>
#include <vector>

namespace latchkey::test {

inline config cluster_config(event_log const& log) {
  config settings = steady_config(log);
  settings.connect_timeout = 1s * slowness;
  settings.timeout = 1s * slowness;
  settings.close_timeout = patience;
  settings.retry_attempts = 20;  // their number is not to be used up before a failover is over
  return settings;
}

struct cluster_world {
  explicit cluster_world(std::chrono::milliseconds node_timeout = std::chrono::minutes(1), config const& given = {})
      : servers(node_timeout) {
    config settings = cluster_config(log);
    settings.failover_quarantine = given.failover_quarantine;
    settings.lock_watchdog_timeout = given.lock_watchdog_timeout;
    own.emplace(servers.uri(), settings);
    own->connect(patience);
  }

  bool has(std::size_t node, std::string_view lock) {
    auto admin = servers.node(node).admin();
    admin.command("READONLY");
    auto const said = admin.command("EXISTS", lock);
    return !said.is_error() && said.integer == 1;
  }

  // Somebody waits for a lock of this node.
  bool is_listened_to(std::size_t node) {
    char const* const sort = redis_major() < 7 ? "CHANNELS" : "SHARDCHANNELS";
    return wait_until([&] { return servers.node(node).admin().ok("PUBSUB", sort).elements.size() == 1; });
  }

  event_log log;
  cluster_set servers;
  std::optional<client> own;
};

using getter = distributed_lock (client::*)(std::string) const;

// Waits on a thread of its own for a lock, and says when it had it.
struct waiter {
  waiter(client const& of, std::string name, getter get = &client::get_lock)
      : had(std::async(std::launch::async, [lock = (of.*get)(std::move(name))] {
          lease const mine = lock.acquire({.wait = patience});
          return mine.held() ? std::chrono::steady_clock::now() : std::chrono::steady_clock::time_point::max();
        })) {}
  std::future<std::chrono::steady_clock::time_point> had;
};

// Clients that take one lock in turn, and look whether anybody else has it.
class crowd {
 public:
  crowd(cluster_world& w, getter get, std::string const& name) {
    for (int i = 0; i < 8; ++i)
      all_.push_back(std::async(std::launch::async, [this, &w, get, name] {
        client one(w.servers.uri(), cluster_config(w.log));
        auto const lock = (one.*get)(name);
        try {
          while (!over_) {
            auto held = lock.acquire({.wait = patience});
            if (!held.held()) return std::string("starved");
            if (++inside_ != 1) ++doubles_;
            ++sections_;
            --inside_;
            if (held.release() != release_result::released) return std::string("lost");
          }
        } catch (lock_error const& error) {
          return std::string(error.what());
        }
        return std::string();
      }));
  }
  ~crowd() { over_ = true; }
  // They are at work.
  void go_on() {
    int const before = sections_;
    CHECK(wait_until([&] { return sections_ > before + 20; }));
  }
  void end() {
    over_ = true;
    for (auto& one : all_) CHECK(one.get() == std::string());
    CHECK(doubles_ == 0);
  }

 private:
  std::atomic<bool> over_{false};
  std::atomic<int> inside_{0}, doubles_{0}, sections_{0};
  std::vector<std::future<std::string>> all_;
};

}  // namespace latchkey::test
