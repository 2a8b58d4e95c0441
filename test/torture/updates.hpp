#pragma once

#include <simulation/randomness.hpp>
#include <torture/history.hpp>
#include <torture/options.hpp>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace latchkey::torture {

// How the lock of a counter is taken. Each way has counters of its own on the same servers.
enum class way : std::uint32_t {
  none,        // min_synced_replicas = 0
  one,         // 1
  all,         // -1
  quarantine,  // 0, and failover_quarantine
  token,       // 0, and the counter refuses older fencing tokens, and the same from somebody else
  redisson,
};
constexpr std::size_t ways = 6;
constexpr std::size_t counters = 3;  // of each way; in a cluster one in the slots of each third

// What a caller shows: a server that lost the last grant in a failover gives its token once more, to another holder.
struct credential {
  std::uint32_t token = 0;  // 0: there are none. Below 2^24
  std::uint8_t holder = 0;
};

// A number that is read and written back under a lock, in memory that no server knows.
class counter {
 public:
  // Empty: a newer token has been seen, or this one from another holder.
  std::optional<std::uint32_t> read(credential by);
  // The value that stood there before. Empty: as above, and nothing was written.
  std::optional<std::uint32_t> write(std::uint32_t value, credential by);

  std::uint32_t value() const { return static_cast<std::uint32_t>(all_.load()); }

  std::atomic<std::uint64_t> acknowledged{0};
  std::atomic<std::uint64_t> refused{0};  // for their token
  std::atomic<std::uint64_t> untold{0};   // holds that were lost before the write, and told
  std::atomic<std::uint64_t> failed{0};   // calls that ended with an error, or in vain

 private:
  std::optional<std::uint32_t> exchange(std::optional<std::uint32_t> value, credential by);

  std::atomic<std::uint64_t> all_{0};  // the token, its holder, and the value
};

// What the processes of one set of servers share in memory.
struct ledger {
  std::array<std::array<counter, counters>, ways> of;
};
ledger& map_ledger(std::string const& folder);

// The name of a lock.
std::string counter_name(way how, std::size_t number);

// A counted section: how long it lasts, and what comes after it.
struct timing {
  std::int64_t work, rest;
};
timing draw_timing(simulation::dice& by, milliseconds lease);

// The life of a process that counts, in all ways but Redisson's.
int run_updates_worker(options const& run);

// Threads that count by Redisson, told by its driver, in the process that makes them. \pre redisson_is_built()
class redisson_updates {
 public:
  redisson_updates(options const& run, std::string const& uri, ledger& into);
  redisson_updates(redisson_updates const&) = delete;
  redisson_updates& operator=(redisson_updates const&) = delete;
  ~redisson_updates();

 private:
  struct parts;
  std::unique_ptr<parts> parts_;
};

}  // namespace latchkey::torture
