// Locks in a cluster: each is on the master that has the slot of its name, and one client reaches them all.
// Usage: cluster [redis-cluster://HOST[:PORT],HOST...]; without arguments `redis-cli` makes a cluster of three private
// servers, which takes a few seconds.

#include "demo/private_cluster.hpp"

#include <latchkey/latchkey.hpp>

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <string>

using namespace std::chrono_literals;

namespace {

int use(std::string const& uri) {
  latchkey::config settings;
  settings.on_event = [](latchkey::event const& what) {
    if (what.type == latchkey::event_type::topology_changed) std::cout << what.text << "\n";
  };
  // [cluster]
  latchkey::client const client(uri, settings);  // redis-cluster://10.0.0.1,10.0.0.2: any of the nodes
  latchkey::lease const order = client.get_lock("order:42").acquire({.wait = 5s});
  latchkey::lease const stock = client.get_lock("stock:7").acquire({.wait = 5s});  // on another node, perhaps
  // [/cluster]
  std::cout << (order.held() && stock.held() ? "both are held\n" : "it did not work\n");
  return order.held() && stock.held() ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc == 2) return use(argv[1]);
    demo::private_cluster const servers(false);
    return use(servers.uri());
  } catch (std::exception const& error) {
    std::cerr << "cluster: " << error.what() << "\n";
    return EXIT_FAILURE;
  }
}
