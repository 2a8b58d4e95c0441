#pragma once

#include <support/raw_redis.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <string>
#include <vector>

namespace latchkey::torture {

// Nanoseconds on the clock that counts leases. All processes of a machine share it.
inline std::int64_t now() {
  timespec at{};
  ::clock_gettime(CLOCK_BOOTTIME, &at);
  return std::int64_t{at.tv_sec} * 1'000'000'000 + at.tv_nsec;
}

constexpr std::int64_t ms = 1'000'000;
constexpr std::int64_t second = 1'000 * ms;

// What a line of a history says. In brackets what stands in a, b and c; times are nanoseconds.
enum class what : std::uint8_t {
  // --- by a worker ---
  born,          // the process began (index, incarnation, pid)
  ask,           // an acquire begins (wait, lease or 0 if renewed, when it must be over at the latest)
  granted,       // it was granted (token or 0)
  refused,       // it was not; code 0: busy, else the error
  leave,         // the work is done, the release begins (last trusted moment or 0, longest lease, limit); code: told
  released,      // the release ended; code: outcome
  begin,         // another call begins (-, -, limit); code: which
  end,           // it ended; code: 0 or the error
  disconnected,  // a connection of the process went away
  rest,          // after its last release (holds, waiters, requests without an outcome); code: subscriptions
  over,          // the process is about to end by itself (descriptors more than at the beginning)
  // `pause`, too, if it was not run for a while
  // --- by the coordinator ---
  fault,     // a nemesis struck (begin, end, whom); code: which
  deletion,  // a stranger removed the holder of a lock (begin, end)
  pause,     // a worker stood still (begin, end, index)
  kill,      // a worker was killed (index, incarnation)
  outage,    // a server did nothing (begin, end, which)
  stall,     // the machine did not let the coordinator run (begin, end)
  overdue,   // a worker did not end when it should (index, incarnation)
  pool,      // what a semaphore was left with (permits)
  connects,  // how often a worker connected to a sick server (begin, end, how often); lock: the worker
};

// Bits of the code of `leave`.
enum told : std::uint32_t {
  told_not = 0,
  told_by_held = 1,   // held() was false
  told_by_lost = 2,   // lost() asked to stop
  told_silently = 4,  // held() was false, and lost() had not asked to stop seconds later
};
// The code of `released`; an error stands above.
enum class outcome : std::uint32_t { released, still_held, expired, unknown, dropped, error = 16 };
// Bits of the code of `ask`.
enum mode : std::uint32_t { shared = 1, final_round = 2, coroutine = 4 };
// The code of `begin`.
enum class call : std::uint32_t { close, set_count, count_down, set_permits };

// One line. Written in one piece, so that a killed process leaves whole ones.
struct record {
  std::int64_t time = 0;
  std::uint64_t section = 0;  // number of the section or call in its process
  std::int64_t a = 0, b = 0, c = 0;
  std::uint32_t lock = 0;
  torture::what what{};
  std::uint8_t kind = 0;
  std::uint16_t slot = 0;  // which thread or coroutine of the process
  std::uint32_t code = 0;
  std::uint32_t check = 0;
};
static_assert(sizeof(record) == 56);

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

// Maps the file; makes it if it is not there: all zeros.
void* map_bytes(std::string const& path, std::size_t size);
template <class Shared>
Shared& map_file(std::string const& path) {
  return *static_cast<Shared*>(map_bytes(path, sizeof(Shared)));
}
board& map_board(std::string const& path);
std::string board_file(std::string const& folder);

// Appends to a file that outlives this process however it ends. Any thread may write.
class history_writer {
 public:
  explicit history_writer(std::string const& path);

  void write(record line);
  std::uint64_t new_section() { return ++sections_; }

 private:
  test::descriptor file_;
  std::atomic<std::uint64_t> sections_{0};
};

// The readable part of a file.
std::vector<record> read_history(std::string const& path);

// What one process did.
struct process_history {
  int index = 0;
  int incarnation = 0;
  std::vector<record> lines;
};

// What a run left in its folder.
struct run_history {
  std::vector<process_history> workers;
  std::vector<record> coordinator;
  std::vector<std::string> left_behind;  // what was found on the servers afterwards, in words
  std::vector<std::string> accidents;    // workers that ended on their own, in words
};

std::string worker_file(std::string const& folder, int index, int incarnation);
std::string coordinator_file(std::string const& folder);
std::string left_behind_file(std::string const& folder);
std::string accidents_file(std::string const& folder);
std::string servers_folder(std::string const& folder);
void write_lines(std::string const& path, std::vector<std::string> const& lines);
run_history read_run(std::string const& folder);

}  // namespace latchkey::torture
