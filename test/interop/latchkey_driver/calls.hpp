#pragma once

#include <interop/latchkey_driver/call.hpp>
#include <latchkey/latchkey.hpp>
#include <support/event_log.hpp>

#include <optional>
#include <string>
#include <vector>

namespace latchkey::test {

// What the calls work with: one client for each server.
struct driver_world {
  std::vector<client> clients{};
  std::vector<std::string> uris{};
  event_log log{};
};

std::string word(bool value);

// The lock that a call names.
distributed_lock find_lock(driver_world const& world, call_line const& call);

// The time to live as PTTL says it, with -1 and -2.
std::string remaining(distributed_lock const& lock);

// Each makes the call and gives the word for the answer, or nothing if it knows no such kind.
std::optional<std::string> make_lock_call(driver_world const& world, call_line const& call);
std::optional<std::string> make_plain_call(driver_world const& world, call_line const& call);
std::optional<std::string> make_semaphore_call(driver_world const& world, call_line const& call);
std::optional<std::string> make_permit_call(driver_world const& world, call_line const& call);
std::optional<std::string> make_latch_call(driver_world const& world, call_line const& call);

// `turns KIND NAME KEYS TARGET MILLISECONDS MOST`: takes the lock again and again, each time reads the number at each
// key, adds one and writes it back, until the first number has reached the target, MOST turns were taken or the time is
// over. Answers four numbers: turns taken, locks that failed, turns in which reading or writing failed, unlocks that
// failed.
std::string take_turns(driver_world const& world, call_line const& call);

}  // namespace latchkey::test
