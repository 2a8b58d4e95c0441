#include <suite/groups.hpp>

#include <array>

namespace bench {
namespace {

constexpr std::array<group, 13> groups{{
    {"pair", "a free pair from a thread, in six regimes, beside bare clients that sleep or poll", run_pair},
    {"scope", "a lease whose release nobody waits for, on many locks and again and again on one", run_scope},
    {"coroutine", "a free pair on the caller's executor, in six regimes", run_coroutine},
    {"crowd", "many locks at once, from coroutines and from threads, beside what the server takes", run_crowd},
    {"one_lock", "one lock that many callers of one process want", run_one_lock},
    {"processes", "one lock that 2 to 16 processes want", run_processes},
    {"holds", "100,000 holds that are renewed", run_holds},
    {"waiter", "what one waiter costs", run_waiter},
    {"others", "a free pair in a client that holds and waits for much else", run_others},
    {"kinds", "the free pair of every kind, beside a bare client with the same scripts", run_kinds},
    {"allocations", "how often memory is allocated", run_allocations},
    {"first_lock", "round trips until a new client has its first lock", run_first_lock},
    {"settings", "what busy_poll, local_handoff and the batch size of the watchdog do", run_settings},
}};

}  // namespace

std::span<group const> all_groups() { return groups; }

}  // namespace bench
