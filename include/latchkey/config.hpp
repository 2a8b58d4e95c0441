#pragma once

#include <latchkey/boost_guard.hpp>
#include <latchkey/event.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

namespace latchkey {

using std::chrono::milliseconds;

/// Versions of TLS.
enum class tls_version {
  tls1_2,  ///< 1.2
  tls1_3,  ///< 1.3
};

/// How to speak TLS. Read by `rediss://`, `rediss-sentinel://` and `rediss-cluster://`. Files are in PEM and read when
/// the client is made, and again by `client::reload_tls`. A client refuses those that cannot be used with
/// `errc::bad_argument`.
///
/// A server that is refused, or refuses, ends calls at once with `errc::tls_failed` and OpenSSL's words.
struct tls_options {
  /// The authorities that may have signed the server's certificate. Empty: see `ca_directory`.
  std::string ca_file{};
  /// The same, one file each, under the names that `openssl rehash` gives. Both empty: those of the system.
  std::string ca_directory{};
  /// Of this client, with the chain up to its authority. Empty: none.
  std::string certificate_file{};
  /// Of that certificate. Empty: it stands in the same file.
  std::string private_key_file{};
  /// Of that key, if it is encrypted. Nobody is asked for one on a terminal.
  std::string private_key_password{};
  /// The server must show a certificate that an authority has signed, that is in force and that names the host. False:
  /// whoever answers is the server.
  bool verify_peer = true;
  /// The name (or address) that the certificate must have, and that a server with several is asked for. Empty: the host
  /// of the URI, or the one that a sentinel names.
  std::string server_name{};
  /// What is older is refused.
  tls_version minimum = tls_version::tls1_2;
  /// For TLS 1.2, as OpenSSL writes them. Empty: OpenSSL's own choice.
  std::string ciphers{};

  /// The same settings; files are not read for it.
  friend bool operator==(tls_options const&, tls_options const&) = default;
};

/// How long the callers of one client may pass a lock on among themselves before it is really released,
/// so that other processes have their turn. `max_streak` zero: never pass on. Where callers of the client still wait
/// when a streak ends they leave the lock to others for 100 microseconds, so that it does not come back at once;
/// another process waits about `max_time` for each process before it.
struct local_handoff_options {
  int max_streak = 10'000;   ///< most holds in a row; zero: never pass on
  milliseconds max_time{3};  ///< most time for all of them
  /// With `local_turns`: so many hand-offs, re-entries and ends of re-entries of a lock go by the server first, each
  /// within 100 ms of the one before; what follows them like that need not. Zero: none. The server so shows at once
  /// what is done now and then.
  int warm_up = 128;
};

/// Settings of a client, with Redisson's names and defaults where Redisson has them.
/// A client refuses values out of range with `errc::bad_argument`.
struct config {
  /// Lease of a hold without a lease of its own; renewed every third of it. At least 10 ms.
  milliseconds lock_watchdog_timeout{30'000};
  /// Most holds renewed by one script call. 1 to 1000.
  int lock_watchdog_batch_size = 100;
  /// Behind Sentinel and in a cluster: tell of a grant, of an extension and of a renewal only when replicas have it,
  /// too (WAIT); see `min_synced_replicas`. A grant that they do not confirm in time is given back and asked for again,
  /// while the call has time or `retry_attempts` left, and ends with `errc::not_synced`; a renewal counts as not
  /// answered. Without effect on one standalone server, as in Redisson.
  bool check_lock_synced_replicas = true;
  /// How long replicas may take to confirm. Shorter than `timeout`.
  milliseconds replicas_sync_timeout{1'000};
  /// How many replicas have to confirm. 0: one, if the master has any at all, as Redisson. More: so many, whether it
  /// has them or not. -1: all that the sentinels or the cluster know; then a grant that was told outlives one failover
  /// to any of them. With 0 and -1, where there is none nothing is checked, and `event_type::unsynced` tells. A cluster
  /// does not count a master that failed among the replicas of its successor until it is back and follows that.
  int min_synced_replicas = 0;
  /// Behind Sentinel and in a cluster: for so long after a failover was heard of nothing is asked for but by owners who
  /// hold it already, and by those whom a holder of this client passes it on to. With as much as the longest lease in
  /// use, in all clients, no grant that was lost with the old master meets one by the new. Zero: off.
  milliseconds failover_quarantine{0};
  /// How far the clocks of servers may be apart: every hold is trusted for so much less than its lease. A server copies
  /// a lease to its replicas as a time of day, so that a promoted one whose clock is ahead ends it earlier. Leases have
  /// to be longer; and a connection to a server whose clock differs by more from the one of this machine gives a
  /// `warning` (TIME; a refusal is ignored). One standalone server is no exception. Zero, or up to a third of
  /// `lock_watchdog_timeout`.
  milliseconds clock_margin{0};
  /// After this time a silent waiter of a fair lock counts as dead.
  milliseconds fair_lock_wait_timeout{300'000};
  /// A fenced lock whose counter is missing on the server starts it at the server's time in microseconds instead of 1,
  /// so that its tokens also rise after the counter was lost. Must be the same for all clients of the lock.
  bool seed_fencing_token = false;
  /// Most time for one connection: name, socket, handshake. More than zero.
  milliseconds connect_timeout{10'000};
  /// Most time for one answer; a connection that is later is discarded. More than zero.
  milliseconds timeout{3'000};
  /// How often a call that does not wait is tried again. Zero or more. One that waits tries until its wait ends. Behind
  /// sentinels and in a cluster each attempt lasts at least `timeout` while anybody can be asked for the next master.
  int retry_attempts = 4;
  /// Longest pause between two attempts; pauses grow up to it and are random. More than zero.
  milliseconds retry_delay{1'000};
  /// An idle connection is checked this often. Zero: never.
  milliseconds ping_interval{30'000};
  /// Shown by CLIENT LIST, on all connections. No spaces. In it `{id}`, `{pid}`, `{host}` and `{program}` stand for the
  /// UUID of the client, the process, its machine and its program. Empty: see `announce`.
  std::string client_name{};
  /// Without a `client_name`: connections are called `latchkey:<uuid>:<pid>@<host>:<program>`, so that
  /// `client::inspect` can say who holds a lock. Whoever may CLIENT LIST sees it. False: they have no name.
  bool announce = true;
  /// ACL user; empty: the default user. The URI wins.
  std::string username{};
  /// Empty: no AUTH. The URI wins.
  std::string password{};
  /// Number of the database. The URI wins.
  int database = 0;
  /// Certificates and rules of `rediss://`, `rediss-sentinel://` and `rediss-cluster://`.
  tls_options tls{};
  /// By `redis-sentinel://`: how often a sentinel is asked for the master while there is something to do with it; its
  /// announcements are heard meanwhile, and while there is no master it is asked more often. Zero: 1 s. By
  /// `redis-cluster://`: how often a node is asked who has the slots, beside what redirections tell. Zero: 5 s. Until
  /// the client has heard of a failover it may be granted locks by the old master that count for nothing.
  milliseconds scan_interval{0};
  /// ACL user for sentinels, who are asked as nobody if both are empty; `username` and `password` are for the servers
  /// with the locks. The URI wins.
  std::string sentinel_username{};
  /// Their password. The URI wins.
  std::string sentinel_password{};
  /// Also ask sentinels that the given ones know. False: the URI has all of them.
  bool sentinels_discovery = true;
  /// A sentinel that knows no other gives a `warning`, once for each client: alone it agrees with no other that a
  /// master is down. Looked at only with `sentinels_discovery`. Redisson refuses to start.
  bool check_sentinels_list = true;
  /// Certificates and rules for sentinels by `rediss-sentinel://`. While nothing in it is set `tls` is for them, too;
  /// as soon as something is, nothing of `tls` is.
  tls_options sentinel_tls{};
  /// In a cluster: do waiters listen on sharded channels (SSUBSCRIBE), as Redisson's `shardedSubscriptionMode`? Empty:
  /// where servers have them, from Redis 7 on; the right to INFO is not needed. All clients that share locks have to
  /// agree, or do not hear each other.
  std::optional<bool> sharded_subscription{};
  /// True: a cluster in which some slots have no node is refused with `errc::no_master` until it has been seen whole,
  /// as by Redisson when it starts. False: only the slot that is asked for counts.
  bool check_slots_coverage = false;
  /// In a cluster: connections to a node of which nothing was wanted for so long (no hold to renew, nobody waits, no
  /// call) are closed, but for those to one node, so that the next lock finds a connection. Zero: never.
  milliseconds idle_connection_timeout{10'000};
  /// Under which address this client reaches a server that sentinels, or nodes of a cluster, know by this host and
  /// port; by `rediss-cluster://` the host is the name that a node announces, if it does. Empty: the same. Called with
  /// the client's mutex held: it is to be quick, not to throw and not to use the client.
  std::function<std::pair<std::string, std::uint16_t>(std::string const& host, std::uint16_t port)> nat_map{};
  /// How long the callers of this client may pass a lock on among themselves.
  local_handoff_options local_handoff{};
  /// While the server shows one of this client's callers as holder, let the others have the lock in turn, and the
  /// holder take it again, without asking the server, within the bounds of `local_handoff` and when that happens often.
  /// Concerns the reentrant, non-reentrant, spin, plain and write lock. docs/kinds.md, "Local turns", says what
  /// the server shows meanwhile, and what is weaker then. `false`: the server sees every hold.
  bool local_turns = true;
  /// How long a blocking caller may look for its answer before it sleeps. Zero: never look, sleep at once.
  std::chrono::microseconds busy_poll{100};
  /// Most time that `close` and the destructor take, of which holders have all but a fifth, or all but 200 ms, to
  /// release; and that a release waits for its answer (at least 50 ms there).
  milliseconds close_timeout{2'000};
  /// Told what happens; is not to throw. A client with its own thread calls it on its thread for callbacks, one event
  /// after the other and in their order, outside all locks: a slow one delays nothing but other callbacks. At most
  /// 4,096 events wait for it; what comes then is left out, except ends of holds, and a `warning` says how many. When
  /// `close` has returned for lack of time, what still waits is left out. On the caller's executor it is called on
  /// whatever thread took the step, outside all locks: it must be safe to call from several threads, and quick.
  std::function<void(event const&)> on_event{};
  /// The UUID of the client (`client::id`), in lower case; to be used by no other client that may still hold something.
  /// For programs whose holds are to be known by it. Empty: a random one.
  std::string client_id{};
};

}  // namespace latchkey
