#pragma once

#include <interop/support/peer.hpp>
#include <support/kinds.hpp>
#include <support/redis_server.hpp>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace latchkey::test {

// A kind of lock that both libraries have, as the drivers call it, and what a check must know of it.
struct interop_kind {
  std::string name{};
  std::vector<std::string> rivals{};  // kinds whose try by somebody else fails while this is held
  int names = 1;                      // of how many locks it is made
  long long longest_lease = 30'000;   // after a re-entry
  lock_kind const& traits() const { return lock_kind_of(name); }  // of a lock
  bool listens() const;                                           // semaphores and latches do
};

std::vector<interop_kind> const& interop_kinds();

// Names of locks for one check, never used twice, as a call wants them.
std::string names_for(interop_kind const& kind, std::string const& base = {});

// Names that a careless client would write wrongly.
std::vector<std::string> const& odd_names();

// What a check found wrong.
struct check_failed : std::runtime_error {
  using std::runtime_error::runtime_error;
};

void demand(bool fulfilled, std::string const& otherwise);
// The answer is this word.
void demand(answer const& got, std::string_view wanted, std::string const& of);

// Which library does what is checked, and which one is affected by it.
struct direction {
  peer& first;
  peer& second;
  std::string name() const { return first.library() + " > " + second.library(); }
};

// Runs a check and writes its outcome into the cell of the table for this check, kind and direction. What it returns is
// a remark for the table, a figure for instance.
void cell(std::string const& check, std::string const& kind, std::string const& direction,
          std::function<std::string()> const& body);

// What a cell shows of these wake-ups. The usual one is prompt; the slowest may have met a busy machine, and is far
// from the time after which a waiter looks by itself.
std::string demand_prompt(std::vector<std::chrono::microseconds> wake_ups);

// Several cells of one check, filled beside each other since each takes its time.
struct cell_job {
  std::string kind;
  std::string direction;
  std::function<std::string()> body;
};
void cells_together(std::string const& check, std::vector<cell_job> const& jobs);

// A cell that cannot be filled, and why.
void no_cell(std::string const& check, std::string const& kind, std::string const& why);

// Three servers (the kinds that are made of several locks use all) and a process of each library.
struct interop_world {
  explicit interop_world(std::chrono::milliseconds watchdog_timeout,
                         std::chrono::milliseconds fair_lock_wait_timeout = 0ms);

  std::vector<std::string> uris() const;
  direction redisson_first() { return {*redisson, *ours}; }
  direction latchkey_first() { return {*ours, *redisson}; }
  // Comes back when somebody waits for this lock of a kind.
  void await_waiter(interop_kind const& kind, std::string const& names);
  // The same for a worker of this process: also when it is Redisson's, which is deaf for a moment after it subscribed.
  void await_waiter(interop_kind const& kind, std::string const& names, peer& waiter, std::string const& worker);

  std::chrono::milliseconds watchdog_timeout;
  std::vector<std::unique_ptr<redis_server>> servers;
  raw_redis admin;
  std::unique_ptr<peer> redisson;
  std::unique_ptr<peer> ours;
};

// One in which something runs out; the watchdogs renew every second.
inline constexpr std::chrono::milliseconds quick_timeout = 3s;

// A watchdog timeout with which no renewal comes in the middle of a history.
inline constexpr std::chrono::milliseconds unrenewed = 10min;

// With Redisson's watchdog timeout of 30 s. Shared by the tests of a file.
interop_world& steady_world();

}  // namespace latchkey::test
