// A lock on five independent servers, two of which are killed while you watch: the majority carries it on. When a third
// one goes the lock is lost, and the holder hears it. Usage: five_servers; it starts its servers itself.

#include "demo/private_server.hpp"

#include <latchkey/latchkey.hpp>

#include <boost/asio/thread_pool.hpp>

#include <array>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <thread>
#include <vector>

using namespace std::chrono_literals;

namespace {

constexpr auto lease_time = 2s;

// Until the watchdog of every client has renewed its hold at least once.
void outlive_a_lease() { std::this_thread::sleep_for(lease_time + 500ms); }

bool tell(char const* what, bool good) {
  std::cout << what << (good ? "\n" : ": no, this went wrong\n") << std::flush;
  return good;
}

int run() {
  std::array<std::optional<demo::private_server>, 5> servers;
  // [red]
  latchkey::config settings;
  settings.lock_watchdog_timeout = lease_time;
  boost::asio::thread_pool thread(1);     // for all clients: five answers then wake one thread and not five
  std::vector<latchkey::client> clients;  // one for each server; none of the servers knows of the others
  std::vector<latchkey::distributed_lock> locks;
  for (auto& server : servers) {
    clients.emplace_back(thread, server.emplace().uri(), settings);
    locks.push_back(clients.back().get_lock("ledger"));
  }
  auto const lock = clients.front().get_red_lock(locks);
  auto hold = lock.acquire({.wait = 5s});
  // [/red]
  bool good = tell("held on five servers", hold.held());

  servers[0].reset();
  servers[3].reset();
  outlive_a_lease();
  good = tell("two servers killed: still held", good && hold.held());
  auto const second = lock.acquire({.wait = 100ms});
  good = tell("and by nobody else", good && !second);

  servers[1].reset();
  auto const end = std::chrono::steady_clock::now() + 2 * lease_time;
  while (hold.held() && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(10ms);
  good = tell("a third one killed: lost, and the holder knows", good && !hold.held());
  return good ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace

int main() {
  try {
    return run();
  } catch (std::exception const& error) {
    std::cerr << "five_servers: " << error.what() << "\n";
    return EXIT_FAILURE;
  }
}
