#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>

namespace latchkey::torture {

constexpr std::size_t most_processes = 32;

// What the processes of a run share in memory.
struct board {
  enum phase : std::uint32_t { work, last_round, quit };

  std::atomic<std::uint32_t> now_is{work};
  std::array<std::atomic<std::uint64_t>, most_processes> sections{};
  std::array<std::atomic<std::uint64_t>, most_processes> lost{};
  std::atomic<std::uint64_t> latch_tickets{0};
  // Which round was last set here; rounds that are so far apart never run together.
  std::array<std::atomic<std::uint64_t>, 1024> latch_set{};
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

// Maps the file; makes it if it is not there.
board& map_board(std::string const& path);
std::string board_file(std::string const& folder);

}  // namespace latchkey::torture
