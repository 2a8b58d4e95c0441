#pragma once

#include <latchkey/boost_guard.hpp>
#include <latchkey/error.hpp>
#include <latchkey/owner.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

namespace latchkey {

/// What happened, for `config::on_event`.
enum class event_type {
  attempt,              ///< a request for a lock leaves for the server
  waiting,              ///< a caller found it busy and waits
  granted,              ///< a hold began; `took` is the time since the call
  handed_off,           ///< a release passed the lock on to a waiter of this client
  gave_up,              ///< a call ended without the hold; `error` says why: `busy`, `timeout`, cancelled
                        ///< (`asio::error::operation_aborted`), or what refused it; `took` is the time since the call
  released,             ///< a hold ended by release; `took` is how long it was held
  at_risk,              ///< a renewal had no answer, or could not leave; the lease still runs
  lost,                 ///< a hold ended otherwise; `error` says why
  max_hold_reached,     ///< a hold has lasted for `acquire_options::max_hold`; it is lost
  abandoned,            ///< a grant that nobody waits for any more is given back
  connected,            ///< a connection is ready; `text` is our own address, as CLIENT LIST shows it
  disconnected,         ///< a connection for commands or messages went away; `error` says why
  connect_failed,       ///< no connection could be made
  kill_refused,         ///< the server refuses CLIENT KILL or CLIENT INFO: late copies cannot be excluded
  lane_unchecked,       ///< the server refuses CLIENT LIST: the direct lane stays closed
  subscribe_refused,    ///< the server refuses SUBSCRIBE: who waits for that channel polls
  publish_refused,      ///< the server refuses PUBLISH: released, but waiters elsewhere were not told
  no_time_to_live,      ///< the key has no time to live: its holder may never end
  unlock_failed,        ///< `std_mutex::unlock` could not release
  left_to_lease,        ///< held when the client closed, or detached: it ends with its lease, `took` from now
  holder_thread_ended,  ///< a thread ended while it held by lock(): no longer renewed, it ends with its lease
  permit_lost,          ///< a permit may be gone: the server has forgotten the request that took it, or it has no
                        ///< lease and the server refused its release; `error` says why
  callback_failed,      ///< a callback of the user threw; of `config::on_event` the first time alone
  tls_reloaded,         ///< `client::reload_tls` has read the certificates again
  quarantined,          ///< for `took` nothing new is asked for: see `config::failover_quarantine`
  unsynced,             ///< grants are no more confirmed by replicas: the master has none; see `min_synced_replicas`
  topology_changed,     ///< another server has the locks; `text` says from which to which, and its epoch
  unfenced,             ///< a server that was replaced has not said in `connect_timeout` that it runs nothing more:
                        ///< should it be master again, an old request may end a new hold; `text` is its address
  deposed_answer,       ///< an answer of a server that has been replaced was on its way already, and is not believed;
                        ///< once for each connection; `text` is its address
  redirected,           ///< a node of a cluster says that another one has a lock; the first time only
  slot_uncovered,       ///< no node of the cluster has the slot of a lock that is asked for; `text` says which slots
  warning,              ///< anything else worth a line in a log; see `text`. Of a server that refuses for a while: once
};

/// The name of an event as it is written above.
LATCHKEY_EXPORT std::string_view to_string(event_type type) noexcept;

/// One event. The views are valid during the callback only.
struct event {
  event_type type;                       ///< what it is
  std::string_view lock;                 ///< name of the lock; empty if it concerns the client
  std::optional<latchkey::owner> owner;  ///< who, where somebody is concerned
  error_code error;                      ///< why, for `gave_up`, `lost`, `disconnected`, `connect_failed`
  std::string_view text;                 ///< the server's words or an explanation; never a password
  std::chrono::microseconds took{0};     ///< how long, where it makes sense
  std::string_view kind{};               ///< of the lock, as `kind_stats::kind`; empty if it concerns the client
  std::uint64_t context = 0;             ///< `acquire_options::context` of the call that it is about, or else zero
};

}  // namespace latchkey
