#pragma once

#include <latchkey/boost_guard.hpp>
#include <latchkey/config.hpp>
#include <latchkey/count_down_latch.hpp>
#include <latchkey/detail/initiate.hpp>
#include <latchkey/distributed_lock.hpp>
#include <latchkey/fwd.hpp>
#include <latchkey/lease.hpp>
#include <latchkey/lock_state.hpp>
#include <latchkey/owner.hpp>
#include <latchkey/permit_semaphore.hpp>
#include <latchkey/read_write_lock.hpp>
#include <latchkey/semaphore.hpp>
#include <latchkey/stats.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/execution_context.hpp>

#include <concepts>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace latchkey {

/// Connections to a Redis server and everything that is held and waited for through them.
///
/// URIs: `redis://[user[:password]@]host[:port][/db]`, the same with `rediss://` for TLS (see `tls_options`),
/// `unix:///path/to.sock[?db=n]`, and `embedded:`, which starts a private `redis-server` on a temporary Unix socket and
/// stops it with the client (for first steps and tests).
/// `redis-sentinel://[user[:password]@]host[:26379],host2.../master[/db][?sentinel_user=u&sentinel_password=p]`, and
/// `rediss-sentinel://` with TLS to sentinels and servers, follow the master of that name; docs/topologies.md says what
/// a failover may cost. `redis-cluster://[user[:password]@]host[:6379],host2...`, and `rediss-cluster://`, learn from
/// these nodes who has which slots; a lock is on the master that has the slot of its name.
///
/// \par Threads
/// Safe to use from several threads, but for moving and destroying it. The name in a URI is looked up on a thread of
/// its own, one at a time, which may outlive the client by as long as the resolver hangs.
///
/// \par Processes
/// Programs that this process starts inherit no descriptor of a client.
class LATCHKEY_EXPORT client {
 public:
  using executor_type = asio::any_io_executor;  ///< of handlers without an executor

  /// With an I/O thread of its own. Does not connect yet. Copies the URI.
  ///
  /// Callbacks (`config::on_event`, `lease::on_lost`) and handlers without an executor run one after the other on a
  /// second thread, which is started when the first of them is due: a slow one delays others, but no renewal and no
  /// I/O. Blocking calls are refused there with `errc::would_deadlock`: what they wait for may need that thread.
  /// \throws lock_error `bad_uri`, `bad_argument` (a setting out of range, a certificate that cannot be used), or
  ///         `connect_failed` where the process may have no more threads or descriptors; the text says what and where.
  explicit client(std::string_view uri, config settings = {});

  /// On the caller's executor: starts no thread. An open connection counts as work: `run()` returns after `close`.
  /// Callbacks and handlers run there, too, and events on whatever thread took the step: a slow one delays renewals.
  /// A handler in which other calls end is followed by theirs, up to 16, before `run_one()` returns; with any client,
  /// this also holds for handlers that are bound to a context of the caller's.
  client(asio::any_io_executor executor, std::string_view uri, config settings = {});

  /// On the caller's execution context, for instance an `io_context`.
  template <class Context>
  requires std::derived_from<Context, asio::execution_context> client(Context& context, std::string_view uri,
                                                                      config settings = {})
      : client(asio::any_io_executor(context.get_executor()), uri, std::move(settings)) {}

  /// What is moved from can only be destroyed or assigned to.
  client(client&&) noexcept;
  /// Ends what it was, as the destructor does, and goes on as the other.
  client& operator=(client&&) noexcept;
  /// As `close`; never throws.
  ~client();

  /// A reentrant lock. No I/O.
  /// \throws lock_error `bad_argument` if the name is empty or longer than 64 KiB. Any bytes are allowed in it. Of a
  ///         cluster also `cross_slot`: the keys that belong to this name (`a{b`) would lie in several slots.
  distributed_lock get_lock(std::string name) const;

  /// A lock that its owner can take once only. No I/O.
  ///
  /// Whoever holds it and takes it again is told `errc::already_held` at once; nothing is sent, and the hold stays as
  /// it was. Everything else is as with `get_lock`, also on the server: an owner shows as a hash with the count 1.
  /// Redisson's clients, and those that use `get_lock` for the name, are kept out as they are by a reentrant lock.
  ///
  /// \par Source
  /// Redisson's `RedissonNonReentrantLock`.
  /// \throws lock_error as `get_lock`.
  distributed_lock get_non_reentrant_lock(std::string name) const;

  /// A reentrant lock without messages: whoever waits looks again and again. No I/O.
  ///
  /// The pauses are those of Redisson's exponential back-off, 1 ms at first and doubled up to 128 ms, with a random
  /// part. Of the waiters of one client only the first looks, and a release passes the lock on to it without a pause.
  /// For locks that are held for a moment, or where subscribing is not possible: a waiter costs some ten requests a
  /// second, and finds a lock released by another client up to 128 ms late.
  ///
  /// On the server: the hash of a reentrant lock, so that both exclude each other; but a release here wakes no waiter
  /// of `get_lock`, who then looks when the lease that he read would have ended.
  ///
  /// \par Source
  /// Redisson's `RedissonSpinLock`.
  /// \throws lock_error as `get_lock`.
  distributed_lock get_spin_lock(std::string name) const;

  /// A reentrant lock whose grants are numbered, for resources that refuse writers of the past. No I/O.
  ///
  /// Every grant, a re-entry included, takes the next number of a counter on the server; `lease::fencing_token` keeps
  /// it. A holder's token is above those of all earlier holders and below those of all later ones, of all clients,
  /// Redisson's included, so that a resource that remembers the largest it has seen can refuse a holder who was paused
  /// and does not know that his lease is over. The counter has no time to live, outlives the lock's key and force
  /// unlocks, and is not moved by grants of `get_lock`, with which a fenced lock excludes itself.
  ///
  /// Where the counter cannot be raised (it is no number, or the largest, or memory is short), nobody gets the lock.
  ///
  /// A counter that was lost would start again at 1; see `config::seed_fencing_token`.
  ///
  /// \par Source
  /// Redisson's `RFencedLock`: beside the hash a string `redisson_lock_token:{name}`.
  /// \throws lock_error as `get_lock`.
  distributed_lock get_fenced_lock(std::string name) const;

  /// A lock as most other libraries write it: `SET name value NX PX lease`, and deleted by whoever finds his own value.
  /// No I/O.
  ///
  /// Excludes redis-py's `Lock`, redsync and node-redlock on the same key. Not reentrant: a second take by the owner is
  /// `errc::already_held`. Without a lease of its own it is renewed by the watchdog as every other lock.
  ///
  /// The value is `uuid:owner`, with the UUID of this client, of which 122 bits are random: nobody else writes it. It
  /// is the same for every hold of one owner; where others draw a new value for every hold, so that a late delete of an
  /// earlier one does no harm, this client has a late request of its own killed before it sends another.
  ///
  /// Holders of other libraries tell nobody when they release, so the first waiter of a client looks again after 8 ms,
  /// doubled up to 256 ms, with a random part; releases of clients of this library are also told by a message.
  /// A string that is no lock cannot be told from one: it is waited for, and `force_unlock` deletes it. A key of
  /// another type is `errc::wrong_type`.
  ///
  /// \throws lock_error as `get_lock`.
  distributed_lock get_plain_lock(std::string name) const;

  /// A lock that any number of readers or one writer may hold. No I/O.
  /// \throws lock_error `bad_argument` as `get_lock`.
  read_write_lock get_read_write_lock(std::string name) const;

  /// A reentrant lock that is granted in the order of arrival, over all processes, Redisson's included. No I/O.
  ///
  /// On the server: a list of those who wait and a sorted set of times at which each of them counts as dead, in
  /// milliseconds of the server's clock. Every waiter enters the list when it comes, looks again (the first eight every
  /// second at least, those far behind every 10 s), and leaves when it gives up or its client is closed. A waiter whose
  /// process died costs the others at most `config::fair_lock_wait_timeout`, and less than a second where the server
  /// notices that nobody listens for it; of many that stand together eight are passed over at a time.
  /// `try_lock()` without a wait enters nothing, and is refused while somebody else is first.
  ///
  /// Costs more than `get_lock`: each waiter has a channel of its own and talks to the server for itself. A release
  /// passes the lock on inside the client only if that waiter is the first of all.
  ///
  /// \par Source
  /// Redisson's `RFairLock`.
  /// \throws lock_error as `get_lock`.
  distributed_lock get_fair_lock(std::string name) const;

  /// All of these locks as one: it is held when every member is.
  ///
  /// Members may be of any kind, belong to different clients and be joined locks themselves. All members have the
  /// same owner. The lock has no keys of its own; whoever uses a member alone is excluded, too.
  ///
  /// \par Acquiring
  /// Members of the reentrant lock's family and one client are taken by one script call (48 at most) that checks all
  /// before it takes any; the others in the order of the list, and whoever finds one busy gives back what he has,
  /// waits in the queue of that one while he holds nothing, and tries the others again. Callers with different orders
  /// do not deadlock; those who meet again and again pause for a random time. The wait bounds the whole call. An error
  /// of a member that will not pass by itself ends the call; one that may pass is waited for like a busy member, and so
  /// is one that does not answer within a tenth of the lease (50 ms at least) while others are held. Who waits has no
  /// place in a line between clients: later callers may have it earlier.
  ///
  /// \par Holding
  /// Loss of one member is loss of all: the others are released, and the lease is told once. `lease::remaining` is the
  /// least of the members. `release` and `unlock` try every member before they report the first error, else the worst
  /// result. `extend` extends all. There is no fencing token. What it has of a member is not ended by the member's
  /// `unlock` (`not_owner`).
  ///
  /// \par Questions
  /// `is_locked` and `is_held_by` are true if they are of every member, `hold_count` is the least. `force_unlock` and
  /// `remaining_time_to_live` are `bad_argument`. `name` joins the members' names with commas. Two handles are equal
  /// if client, members and their order are.
  ///
  /// This client gives the executor and the clock; when it closes, the lock is closed, too, and its leases are awaited.
  /// Blocking calls are refused with `would_deadlock` on a thread that runs the executor of any member's client.
  /// The same lock twice is entered twice if it is reentrant, and fails with its own error if not.
  /// \throws lock_error `bad_argument`: no members, more than 256 (those of members counted), one that was moved from.
  /// \par Source
  /// Redisson's `RedissonMultiLock`, which leaves the rest locked when one unlock fails.
  distributed_lock get_multi_lock(std::vector<distributed_lock> members) const;

  /// A lock on a majority of independent servers (Redlock): it outlives the end of a minority of them.
  ///
  /// Each member is to belong to a client of its own and each client to a server of its own, without replication
  /// between them. A majority is half of the members, rounded down, and one.
  ///
  /// \par Acquiring
  /// All members are asked at once and none is waited for longer than a tenth of the lease (50 ms at least). It is
  /// granted with the answer that makes the majority, if by then the hold has time left; grants of the others that
  /// come later join it with the lease that they were asked for, also behind an `extend`. A round without majority is
  /// given back on every server, also where the answer is not known, and another follows after a random pause, within
  /// the wait. A wait shorter than 50 ms may take as long.
  ///
  /// \par Holding
  /// `lease::valid_until` is when the majority's leases end, counted from sending, less a hundredth of the lease and
  /// 2 ms for clocks that run apart. Every member is renewed by its own client; the hold is lost when less than a
  /// majority is left. A member that was lost or missing is not taken again during the hold. `release`, `extend` and
  /// questions say what a majority says and leave the others to go on in the background; a member that does not answer
  /// counts as free.
  ///
  /// \par What it cannot promise
  /// There is no fencing token, so a holder who was paused past his lease cannot be told from the next one by a
  /// resource: where that matters use one server and a fenced lock, and let the resource compare the tokens. It relies
  /// on clocks: a server whose clock jumps forgets too early. A server that restarts without what it had written
  /// (appendfsync less than always) may grant again what it had granted, so that two majorities exist: keep a restarted
  /// server away for the longest lease. It is no consensus; with one server and replicas it promises nothing.
  ///
  /// Otherwise as `get_multi_lock`, by majority.
  /// \throws lock_error `bad_argument`: as for `get_multi_lock`, and if the same lock is there twice. A lease that is
  /// not longer than the drift of clocks is refused when it is asked for.
  /// \par Source
  /// Redisson's `RedissonRedLock`, which has neither validity time nor drift.
  distributed_lock get_red_lock(std::vector<distributed_lock> members) const;

  /// Permits without owners. No I/O. Names as `get_lock`.
  semaphore get_semaphore(std::string name) const;
  /// The same; calls of this handle that take permits first set their number to `permits` if the name has none yet (as
  /// `semaphore::try_set_permits`, in the same script call, also if there are then too few). No I/O.
  /// \throws lock_error as `get_lock`; `bad_argument` for a negative number.
  semaphore get_semaphore(std::string name, int permits) const;
  /// Permits with ids and leases. No I/O. Names as `get_lock`.
  permit_semaphore get_permit_semaphore(std::string name) const;
  /// A count that waiters see reach zero. No I/O. Names as `get_lock`.
  count_down_latch get_count_down_latch(std::string name) const;

  /// Who holds this lock, of any client, Redisson's included, and who waits for it: for operators, and for
  /// `distributed_lock::force_unlock_if`. Any handle of the name and kind will do; of a read-write lock either side.
  ///
  /// On the server: up to five questions, one after the other, so that the answer may mix two moments: the key, its
  /// time to live, PUBSUB NUMSUB or the line of a fair lock, INFO clients and, if there are at most 2,000, CLIENT LIST.
  /// All but the first two and the line may be refused: then their part is empty.
  /// \throws lock_error as `distributed_lock`; `bad_argument` for a lock of several members.
  lock_state inspect(distributed_lock const& lock) const;

  /// As `inspect`. Completes with `void(error_code, lock_state)`. Ignores cancellation.
  template <asio::completion_token_for<void(error_code, lock_state)> Token = asio::deferred_t>
  auto async_inspect(distributed_lock const& lock, Token&& token = asio::deferred_t{}) const {
    return detail::initiate_on(get_executor(), lock.key_, start_inspect, token);
  }

  /// Takes up a hold that `lease::detach` has let go, in this process or another one; `latchkey acquire` and
  /// `latchkey run` (LATCHKEY_TOKEN) give such tokens, too. Empty: the server does not show it any more.
  ///
  /// It is a fixed lease of what the server says is left, counted from when it was asked; nothing renews it, `extend`
  /// makes it longer. Its owner is the one who was granted it if this client was, else a new one of this process that
  /// stands for it; the fencing token is that of the grant. When the time is over here, it is lost, and nothing is
  /// released: another process that adopted it may have extended it. So adopt a hold once at a time: of two leases the
  /// first that is released ends the hold of both, and the other hears of it at its next `extend`, or its end.
  ///
  /// On the server: one short script that reads, and a renewal to what is left (none of a hold without a time to live),
  /// since it may have been released meanwhile. Behind Sentinel and in a cluster replicas are asked of that
  /// (`check_lock_synced_replicas`).
  /// \throws lock_error as `distributed_lock`; `bad_argument`: no token, or that of a permit or of several locks;
  ///         `already_held`: this client shows the hold already; `not_synced`: too few replicas have confirmed it, and
  ///         it is left as it was.
  lease adopt(std::string_view token) const;

  /// As `adopt`. Completes with `void(error_code, lease)`. Ignores cancellation.
  template <asio::completion_token_for<void(error_code, lease)> Token = asio::deferred_t>
  auto async_adopt(std::string_view token, Token&& completion = asio::deferred_t{}) const {
    return detail::initiate<void(error_code, lease)>(
        get_executor(), completion,
        [core = core_, text = std::string(token)](detail::handler<void(error_code, lease)> done) {
          start_adopt(core, text, std::move(done));
        });
  }

  /// A new owner; same as `owner::make()`.
  owner new_owner() const;

  /// The UUID of this client: what stands before the colon in the field of a hold.
  std::string const& id() const;

  /// Counters and gauges of this moment.
  /// \throws lock_error `closed` in the child of a fork.
  stats snapshot() const;

  /// Where handlers without an executor of their own run.
  executor_type get_executor() const;

  /// Makes the connections that calls will use, and says whether the server can be used: for warming up, and for the
  /// answer to a readiness probe. Not needed: the first call connects by itself.
  ///
  /// Waits at most `wait` (50 ms where it is shorter), `config::connect_timeout` if it is not given. While the server
  /// cannot be reached, is loading or busy, it is tried again until then. Repeated calls cost one round trip.
  ///
  /// Of a cluster it connects to one master, and to all of them if that one is not there in 100 ms: one is enough.
  ///
  /// On the server: the handshake on up to three connections, ROLE on one that was there before, and one script
  /// without keys that does nothing. Missing rights to CLIENT KILL, CLIENT LIST and SUBSCRIBE are told by
  /// `kill_refused`, `lane_unchecked` and `subscribe_refused` to `config::on_event`, before this returns, and are no
  /// errors. Rights to keys, to channels and to the commands of a kind are not asked for: which will be used is not
  /// known. Nor is anything written, so that a server without memory passes.
  ///
  /// After an error nothing is left behind; what was connected stays connected.
  /// \throws lock_error `connect_failed` (no route, or what the system says), `timeout` (no answer), `auth_failed`
  ///         and `tls_failed` at once (in the pause after such a failure at the next try, or at the end of the wait),
  ///         `read_only` (a replica), `server_error` (loading, busy, scripts not allowed),
  ///         each with the last words; `closed`, also in the child of a fork; `would_deadlock` on a thread that runs
  ///         the client's executor.
  void connect() const;
  void connect(timespan wait) const;  ///< the same, waiting so long

  /// As `connect()`. Completes with `void(error_code)`. Cancellation ends it with `asio::error::operation_aborted`.
  template <asio::completion_token_for<void(error_code)> Token = asio::deferred_t>
  auto async_connect(Token&& token = asio::deferred_t{}) const {
    return detail::initiate_on(get_executor(), core_, start_connect, token);
  }

  /// Reads the files of `config::tls` and `sentinel_tls` again, for connections that begin from now on; those that
  /// exist go on as they are, and what could not be connected is tried again at once. For certificates that were
  /// renewed on disk. Reads files on the calling thread. Without TLS it does nothing. Told by
  /// `event_type::tls_reloaded`.
  /// \throws lock_error `bad_argument`: a file cannot be used; the text says which, and why. All that was read before
  ///         stays in use. `closed` in the child of a fork.
  void reload_tls() const;

  /// Tells holders, waits for them, and releases nothing under them; takes at most `config::close_timeout`.
  ///
  /// New calls are refused and waiters fail, both with `errc::closed`. Leases and permits are told (`lost`, `on_lost`,
  /// bodies of `with_lock` are cancelled; reason `closed`). What the calling thread holds by `lock()` is released. Then
  /// it waits until every lease is released; meanwhile they are renewed, and calls that end or give back something
  /// (`lease::release`, `unlock`, `async_unlock`, permits) still go to the server. What is held when that time ends, or
  /// is held by no lease when no lease is left, is **left to its lease**: not renewed, not released, and told by an
  /// event `left_to_lease`. Pending releases are finished, and the client's threads joined.
  ///
  /// A lease that the calling thread keeps itself cannot be released during the wait: end it first, or it costs
  /// `close_timeout` and is left. Without leases nothing is waited for. Never waits for a thread that runs the caller's
  /// executor, nor on the client's own threads (a callback may call it): there, and with the caller's executor, it
  /// returns at once and the rest goes on behind. A second call waits as well; it releases what its own thread holds.
  void close();

  /// As `close`. Completes with `void(error_code)`. Ignores cancellation.
  template <asio::completion_token_for<void(error_code)> Token = asio::deferred_t>
  auto async_close(Token&& token = asio::deferred_t{}) const {
    return detail::initiate_on(get_executor(), core_, start_close, token);
  }

 private:
  distributed_lock make_lock(std::string name, detail::kind const& which) const;
  distributed_lock join(std::vector<distributed_lock> members, bool majority) const;
  static void start_inspect(std::shared_ptr<detail::lock_key const> const& key,
                            detail::handler<void(error_code, lock_state)> done);
  static void start_adopt(std::shared_ptr<detail::core> const& core, std::string_view token,
                          detail::handler<void(error_code, lease)> done);
  static void start_connect(std::shared_ptr<detail::core> const& core, detail::handler<void(error_code)> done);
  static void start_close(std::shared_ptr<detail::core> const& core, detail::handler<void(error_code)> done);

  std::shared_ptr<detail::core> core_;
};

}  // namespace latchkey
