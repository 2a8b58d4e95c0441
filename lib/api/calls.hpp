#pragma once

#include <api/lock_key.hpp>

#include <cstdint>
#include <stop_token>
#include <utility>
#include <vector>

// What can be done with a lock, be it one name or several members.
namespace latchkey::detail {

void start(lock_key const& key, call& one);
// Those of one client in one step, so that they leave together.
using call_list = std::vector<std::pair<lock_key const*, call*>>;
void start(call_list const& all) noexcept;
void cancel(lock_key const& key, call& one);
// Ends it if its deadline has passed; answers when to ask again.
instant expire(lock_key const& key, call& one);
// Returns when it is completed. A stop cancels it.
void run(lock_key const& key, blocking_call& one, std::stop_token const& stop = {});
// Nobody waits for this release.
void drop(lock_key const& key, std::uint64_t owner, hold_id hold);
// Would a wait of somebody else for this lock end only with a release by this owner?
bool keeps_out(lock_key const& key, std::uint64_t owner);

// Is this process a child of the one that made a client of it?
bool forked(lock_key const& key);
// Would a blocking call on this thread wait for itself?
bool inside(lock_key const& key);
// When a call without a wait of its own ends at the latest.
instant budget_end(lock_key const& key, instant start);
// What a hold that the watchdog renews lasts without renewal.
milliseconds watchdog_time(lock_key const& key);

}  // namespace latchkey::detail
