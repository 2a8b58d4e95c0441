#pragma once

#include <latchkey/client.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace latchkey::torture {

// Who may be inside together.
enum class rule {
  alone,           // one owner
  readers_writer,  // one writer, or any number of readers
  permits,         // as many as there are permits
  rounds,          // a latch: nobody passes before the count is zero
};

struct torture_kind {
  std::string name;
  rule who = rule::alone;
  bool leased = true;     // a hold ends with a lease, also that of a killed process
  bool tokens = false;    // grants are numbered
  bool reenters = false;  // its owner may take it again
  int servers = 1;
  // The lock on this name, for kinds that are locks; `shared` is the read side.
  std::function<distributed_lock(std::vector<client> const&, std::string const&, bool shared)> make{};
};

constexpr int permits = 3;        // of a semaphore
constexpr int latch_parties = 3;  // count a latch down
constexpr int red_servers = 3;
constexpr std::uint32_t locks_of_a_kind = 2;
constexpr std::int64_t pool_life = 5'000'000'000;  // a semaphore is replaced: killed processes keep its permits

// In the order of record::kind.
std::vector<torture_kind> const& torture_kinds();
std::string lock_name(std::uint8_t kind, std::uint32_t lock);

}  // namespace latchkey::torture
