#pragma once

#include <wire/node_address.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace latchkey::detail {

// A master of a cluster, as one of the nodes sees it.
struct cluster_master {
  std::string id;
  node_address at{};                                             // without a host: the node that was asked
  std::string name;                                              // of its host; empty: it does not say
  std::uint64_t epoch = 0;                                       // greater than that of whoever had its slots before
  bool failed = false;                                           // most nodes think so
  std::vector<std::pair<std::uint16_t, std::uint16_t>> slots{};  // from and to, inclusive
  std::size_t replicas = 0;
};

// Of CLUSTER NODES, which alone tells the epochs: those nodes that call themselves masters and can be reached. Lines of
// another form are left out.
std::vector<cluster_master> read_cluster(std::string_view text);

}  // namespace latchkey::detail
