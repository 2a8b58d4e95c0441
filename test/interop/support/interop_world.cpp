#include <interop/support/interop_world.hpp>

namespace latchkey::test {

namespace {

std::vector<std::unique_ptr<redis_server>> three_servers() {
  std::vector<std::unique_ptr<redis_server>> servers;
  for (int i = 0; i < 3; ++i) servers.push_back(std::make_unique<redis_server>(redis_options{.tcp = true}));
  return servers;
}

}  // namespace

interop_world::interop_world(std::chrono::milliseconds timeout, std::chrono::milliseconds fair_lock_wait_timeout)
    : watchdog_timeout(timeout),
      servers(three_servers()),
      admin(servers.front()->admin()),
      redisson(redisson_peer(timeout, uris(), fair_lock_wait_timeout)),
      ours(latchkey_peer(timeout, uris(), fair_lock_wait_timeout)) {}

std::vector<std::string> interop_world::uris() const {
  std::vector<std::string> result;
  for (auto const& one : servers) result.push_back(one->uri());
  return result;
}

void interop_world::await_waiter(interop_kind const& kind, std::string const& names) {
  if (!kind.messages) {
    // It sleeps and looks, and nothing on the server tells of it.
    std::this_thread::sleep_for(200ms);
    return;
  }
  auto const listens = [&] {
    for (auto const& server : servers) {
      for (auto const& channel : server->admin().ok("PUBSUB", "CHANNELS").elements) {
        for (auto const& name : parts_of(names, ',')) {
          if (channel.text.find(percent_decoded(name)) != std::string::npos) return true;
        }
      }
    }
    return false;
  };
  demand(wait_until(listens), "nobody waits");
}

void interop_world::await_waiter(interop_kind const& kind, std::string const& names, peer& waiter,
                                 std::string const& worker) {
  await_waiter(kind, names);
  if (!kind.messages || waiter.library() != "Redisson") return;
  demand(waiter.call("observer", "await_blocked", kind.name, names, worker, patience), "blocked", "the waiter");
}

interop_world& steady_world() {
  static interop_world world(30s);
  return world;
}

}  // namespace latchkey::test
