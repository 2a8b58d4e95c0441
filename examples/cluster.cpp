// Locks in a cluster: each is on the master that has the slot of its name, and one client reaches them all.
// Usage: cluster [redis-cluster://HOST[:PORT],HOST...]; without arguments `redis-cli` makes a cluster of three private
// servers, which takes a few seconds.

#include "demo/private_server.hpp"

#include <latchkey/latchkey.hpp>

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

using namespace std::chrono_literals;

namespace {

// Three masters without replicas: enough to look at, and for nothing else.
class private_cluster {
 public:
  private_cluster() {
    std::string all;
    for (int i = 0; i < 3; ++i) {
      auto const port = std::to_string(demo::free_port());
      std::vector<std::string> const words{"--bind",
                                           "127.0.0.1",
                                           "--port",
                                           port,
                                           "--cluster-enabled",
                                           "yes",
                                           "--cluster-port",
                                           std::to_string(demo::free_port())};
      servers_.push_back(std::make_unique<demo::private_server>(256, words));
      all += " 127.0.0.1:" + port;
      uri_ += (i == 0 ? "" : ",") + ("127.0.0.1:" + port);
    }
    auto const command = "redis-cli --cluster create" + all + " --cluster-yes > /dev/null";
    if (std::system(command.c_str()) != 0) throw std::runtime_error("redis-cli has made no cluster");
  }

  std::string const& uri() const { return uri_; }

 private:
  std::vector<std::unique_ptr<demo::private_server>> servers_;
  std::string uri_ = "redis-cluster://";
};

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
    private_cluster const servers;
    return use(servers.uri());
  } catch (std::exception const& error) {
    std::cerr << "cluster: " << error.what() << "\n";
    return EXIT_FAILURE;
  }
}
