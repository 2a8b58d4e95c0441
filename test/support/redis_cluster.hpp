#pragma once

#include <support/redis_server.hpp>

namespace latchkey::test {

// A server that is a node of a cluster, as yet of itself alone and without slots.
inline redis_options cluster_node() {
  redis_options made{.tcp = true, .arguments = {"--cluster-enabled", "yes"}};
  for (auto& word : since_redis_7({"--cluster-port", std::to_string(free_port())}))
    made.arguments.push_back(std::move(word));
  return made;
}

}  // namespace latchkey::test
