#pragma once

#include <latchkey/boost_guard.hpp>
#include <latchkey/timespan.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace latchkey {

/// What the name of a server's connection says of the client that made it; see `config::announce`.
struct connection_info {
  std::string name{};     ///< whole, as CLIENT LIST shows it
  std::string host{};     ///< empty: the name does not say
  std::string program{};  ///< empty: the name does not say
  int pid = 0;            ///< zero: the name does not say
  std::string address{};  ///< from where it was made, as the server sees it
};

/// Who holds a lock, as the server shows it.
struct holder {
  /// The UUID of its client (`client::id`, or Redisson's). Of a plain lock that another library took: the whole value.
  std::string client_id{};
  /// The number behind the UUID (`to_string(owner)`, or Redisson's thread); empty where there is none.
  std::string owner{};
  /// How often.
  int count = 0;
  /// The exclusive side of a read-write lock.
  bool writes = false;
  /// The connection that carries its UUID. Empty: none does (it is Redisson's, not announced, or gone), CLIENT LIST is
  /// refused, or there are too many connections.
  std::optional<connection_info> from{};
};

/// What a server knows of a lock; see `client::inspect`.
struct lock_state {
  /// Who holds it; several of a read-write lock that is read, and none if it is free.
  std::vector<holder> holders{};
  /// Until the lease ends; empty: free. `milliseconds::max()`: the key has no time to live.
  std::optional<milliseconds> remaining{};
  /// How many connections listen for a release; of a fair lock how many wait in its line.
  std::int64_t listeners = 0;
  /// Of a fair lock: who waits, as `uuid:owner`, in the order in which they are served.
  std::vector<std::string> line{};
};

}  // namespace latchkey
