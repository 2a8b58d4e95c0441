#pragma once

#include <latchkey/boost_guard.hpp>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace latchkey {

/// How often something took how long: bucket `i` counts times below 2^i microseconds, the last one all longer ones.
struct histogram {
  static constexpr std::size_t size = 32;     ///< how many buckets
  std::array<std::uint64_t, size> buckets{};  ///< how often
  std::uint64_t sum = 0;                      ///< of all these times, in microseconds
};

/// What one kind of lock has in the counters of `stats`. Locks made of others count as their members.
struct kind_stats {
  std::string_view kind;  ///< `lock`, `fair_lock`, `read_write_lock` ...; valid for ever
  // counters
  std::uint64_t acquired = 0;    ///< as `stats::acquired`
  std::uint64_t contended = 0;   ///< as `stats::contended`
  std::uint64_t handed_off = 0;  ///< as `stats::handed_off`
  std::uint64_t released = 0;    ///< as `stats::released`
  std::uint64_t lost = 0;        ///< as `stats::lost`
  std::uint64_t busy = 0;        ///< as `stats::busy`
  std::uint64_t timeouts = 0;    ///< as `stats::timeouts`
  std::uint64_t errors = 0;      ///< as `stats::errors`
  // gauges
  std::uint64_t held = 0;     ///< as `stats::held`
  std::uint64_t waiting = 0;  ///< as `stats::waiting`
};

/// One server of a client, at this moment: the only one, the master that sentinels named, or a master of a cluster that
/// locks of this client are on.
struct node_stats {
  std::string address;           ///< `host:port` as this client reaches it, or the socket
  std::uint64_t epoch = 0;       ///< of its mastership, as sentinels or nodes say; zero: nobody says
  bool connected = false;        ///< its connection for commands is ready
  std::uint64_t links = 0;       ///< connections to it that are ready: for commands, messages and a blocked caller
  std::uint64_t in_flight = 0;   ///< commands whose answers are awaited
  std::uint64_t kills_owed = 0;  ///< connections given up that it has not been made to end yet, see `stats::kills`
  std::uint64_t held = 0;        ///< live holds there
};

/// Counters since the client was made, and gauges of this moment.
struct stats {
  // counters
  std::uint64_t acquired = 0;        ///< holds that began, and grants that nobody holds: of a semaphore, a latch
  std::uint64_t contended = 0;       ///< of these, after waiting
  std::uint64_t handed_off = 0;      ///< of these, passed on inside this client
  std::uint64_t released = 0;        ///< holds that ended by release, whatever the server still had of them
  std::uint64_t lost = 0;            ///< holds that ended otherwise
  std::uint64_t busy = 0;            ///< calls that ended without a hold: somebody else had it
  std::uint64_t timeouts = 0;        ///< the same: `errc::timeout`
  std::uint64_t errors = 0;          ///< the same for any other reason, but that they were cancelled
  std::uint64_t given_back = 0;      ///< what was on the server without a holder here, and was removed
  std::uint64_t renewals = 0;        ///< leases renewed by the watchdog
  std::uint64_t reconnects = 0;      ///< connections made after the first of their kind
  std::uint64_t orphans = 0;         ///< connections given up with calls unanswered that may still run
  std::uint64_t unanswered = 0;      ///< requests of owners on these, whose outcome was not known then
  std::uint64_t kills = 0;           ///< discarded connections that were killed on the server (CLIENT KILL)
  std::uint64_t redirected = 0;      ///< requests that a node of a cluster sent to another one
  std::uint64_t switches = 0;        ///< `event_type::topology_changed`, but for the first server of a name
  std::uint64_t waits_met = 0;       ///< WAITs that as many replicas confirmed as were asked for
  std::uint64_t waits_failed = 0;    ///< WAITs that fewer confirmed in time, or none: refused, connection lost
  std::uint64_t commands = 0;        ///< commands sent, scripts included
  std::uint64_t scripts = 0;         ///< script calls sent
  std::uint64_t messages = 0;        ///< unlock messages received
  std::uint64_t bytes_sent = 0;      ///< to the server
  std::uint64_t bytes_received = 0;  ///< from the server
  // gauges
  std::uint64_t held = 0;           ///< live holds
  std::uint64_t waiting = 0;        ///< callers that wait
  std::uint64_t subscriptions = 0;  ///< channels listened to
  std::uint64_t in_doubt = 0;       ///< requests whose outcome is not known yet
  bool connected = false;           ///< the connection for commands is ready
  bool fenced = true;               ///< false: CLIENT KILL is refused, see `event_type::kill_refused`
  bool messages_refused = false;    ///< true: SUBSCRIBE is refused, or its connections do not last: waiters poll
  // times
  histogram wait_time;  ///< from the call to the grant
  histogram hold_time;  ///< from the grant to the release
  /// The same by kind; of the kinds that this client has used.
  std::vector<kind_stats> kinds;
  /// By server; in a cluster of those that this client has had to do with. A server that was replaced stays until it
  /// has ended what it was sent before, or cannot be made to. In no order.
  std::vector<node_stats> nodes;
};

}  // namespace latchkey
