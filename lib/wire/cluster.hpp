#pragma once

#include <wire/node_address.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace latchkey::detail {

// Where names stand in a Redis Cluster, by the server's rule, which is not Redisson's rule for derived names
// (kind.hpp).

inline constexpr int slot_count = 16'384;

// What the server makes the slot of: the hash tag, which stands between the first `{` and the first `}` behind it; all
// of the key if there is no such tag or it is empty. Redis: keyHashSlot.
std::string_view hashed_part(std::string_view key);

// 0 to 16383: CRC16 of the hashed part (polynomial 0x1021, from zero), modulo 16384. Redis: CLUSTER KEYSLOT.
std::uint16_t slot_of(std::string_view key);

// A node of a cluster says that another one has what was asked for, and that it has done nothing.
struct redirection {
  bool once = false;  // ASK: this request alone, and the next one is asked here again. Else MOVED: all of the slot
  std::uint16_t slot = 0;
  node_address to{};  // without a host: at the one that has said so
};

// None: it says something else. Redis: clusterRedirectClient.
std::optional<redirection> read_redirection(std::string_view text);

// A node of a cluster, as one of them sees it.
struct cluster_member {
  std::string id;
  node_address at{};    // without a host: the node that was asked; without a port: it is not told
  std::string name{};   // of its host; empty: it does not say
  bool failed = false;  // most nodes think so
};

struct cluster_master : cluster_member {
  std::uint64_t epoch = 0;                                       // greater than that of whoever had its slots before
  std::vector<std::pair<std::uint16_t, std::uint16_t>> slots{};  // from and to, inclusive
  std::size_t replicas = 0;
};

struct cluster_view {
  std::vector<cluster_master> masters;  // those that can be reached; lines of another form are left out
  std::vector<cluster_member> named;    // all that are known, whatever they are
};

// Of CLUSTER NODES, which alone tells the epochs.
cluster_view read_cluster(std::string_view text);

}  // namespace latchkey::detail
