#pragma once

#include <latchkey/acquire_options.hpp>
#include <latchkey/boost_guard.hpp>
#include <latchkey/detail/initiate.hpp>
#include <latchkey/error.hpp>
#include <latchkey/fwd.hpp>
#include <latchkey/lease.hpp>
#include <latchkey/owner.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

namespace latchkey {

namespace detail {

// Until then by its own clock. A time too far for the common unit of the two saturates instead of wrapping around.
template <class Clock, class Duration>
timespan time_until(std::chrono::time_point<Clock, Duration> when) {
  using wide = std::chrono::duration<long double, std::milli>;
  return wide(when.time_since_epoch()) - wide(Clock::now().time_since_epoch());
}

enum class query_type : unsigned char { is_locked, is_held_by, hold_count, time_to_live, token };

}  // namespace detail

/// A lock on one name, shared by every process that uses the same Redis.
///
/// A handle is cheap to copy and holds no lock: it is a name and a reference to its client. Two handles of
/// one name and client are one lock and compare equal. All members are const, as those of a `shared_ptr`.
///
/// \par Guarantee
/// At most one owner holds the lock while its lease is trusted (`lease::held`), as long as the server that
/// granted it keeps its data and its clock does not jump. It is a lease, not consensus: see the README.
///
/// \par Who owns
/// Blocking calls own as the calling thread (`owner::this_thread()`). Asynchronous calls name their owner.
/// `acquire` without an owner makes a new one.
///
/// \par Errors
/// Blocking calls throw `lock_error`; asynchronous ones complete with the same code. Common to all:
/// `closed`, `bad_argument`, `timeout`, `connection_lost`, `connect_failed`, `no_master`, `tls_failed`, `auth_failed`,
/// `wrong_type`, `read_only`, `server_error`, `protocol_error`; blocking ones also `would_deadlock` on a thread that
/// runs the client's executor. After any error the caller holds what it held before; see `may_still_be_held`.
///
/// \par Cancellation
/// Waiting operations accept terminal, partial and total cancellation and complete with
/// `asio::error::operation_aborted`; the owner then holds what it held before. Releasing operations, extensions and
/// questions ignore it.
///
/// \par One kind for a name
/// Kinds of locks may keep the same key, and then exclude each other. Use one kind for a name: an owner who holds a
/// name, waits for it or is just giving it back through one kind, and asks for it through another kind of the same
/// client, is refused with `bad_argument`. Nothing is sent.
///
/// \par Threads
/// Distinct and shared objects: safe.
///
/// \par Source
/// Redisson's `RLock`: a hash `name` with one field `uuid:owner` whose value is the hold count.
class LATCHKEY_EXPORT distributed_lock {
 public:
  using executor_type = asio::any_io_executor;  ///< of handlers without an executor

  /// Waits without limit, also for a server that cannot be reached, then holds; the watchdog renews the lease until
  /// `unlock`.
  void lock() const;
  /// Waits without limit, then holds for `lease`, without renewal.
  void lock(timespan lease) const;
  /// As `lock()`, but gives up when a stop is asked for: then false, and the thread holds what it held before.
  [[nodiscard]] bool lock(std::stop_token stop) const;
  /// One attempt, no waiting for a holder. True: held. A server that cannot be reached is tried again as
  /// often as `config::retry_attempts` says; at most for `connect_timeout` plus `timeout` for every attempt (25 s).
  [[nodiscard]] bool try_lock() const;
  /// Waits at most `wait`, connecting and sending again included, whatever the server does; a try that is on its way is
  /// awaited for 50 ms where that is longer. False: still busy. Zero or less: one attempt.
  /// \throws lock_error `timeout`: the wait ended without an answer, or the server took no requests (`LOADING`, `BUSY`,
  /// `OOM` ...: its words are in the text); a grant that is still under way is given back. `connect_failed`, or
  /// `no_master` where no node of a cluster has the slot: nothing was ever sent.
  [[nodiscard]] bool try_lock(timespan wait) const;
  /// The same with a fixed lease.
  [[nodiscard]] bool try_lock(timespan wait, timespan lease) const;

  /// C++ *TimedLockable*; rounded up to a millisecond.
  template <class Rep, class Period>
  [[nodiscard]] bool try_lock_for(std::chrono::duration<Rep, Period> wait) const {
    return try_lock(timespan(wait));
  }
  /// C++ *TimedLockable*, of any clock; rounded up to a millisecond. A time that does not fit the clock is for ever.
  template <class Clock, class Duration>
  [[nodiscard]] bool try_lock_until(std::chrono::time_point<Clock, Duration> when) const {
    return try_lock(detail::time_until(when));
  }

  /// Ends the calling thread's latest hold that no lease shows. What `acquire` gave is ended by its lease only, and
  /// what a lock of several members has of this one by that lock only (or by force).
  ///
  /// On the server: one script; the last hold deletes the key and publishes to the waiters, or passes the lock
  /// on to a waiter of this client.
  /// \throws lock_error `not_owner`: the thread has no such hold, nothing was sent. `lease_lost`: the hold had ended
  /// before. `connection_lost`: an answer was lost and the lease ended meanwhile, or the server could not be reached.
  /// In any other case the lease is renewed no longer. It takes at most `config::close_timeout`, then `timeout`: after
  /// that, and while the server cannot be reached, the release goes on in the background. What the server refused
  /// (`server_error`, `wrong_type`, `read_only`) ends with its lease.
  void unlock() const;

  /// Removes any holder and wakes the waiters. False: there was none. Holds of this client are over before the call
  /// ends
  /// (`lease::held`), and told so right then (`lease_lost`); a holder elsewhere learns of it at its next renewal, or
  /// when its lease ends. Never sent twice: after `connection_lost` it ran or it did not, after `timeout` it may still
  /// run.
  bool force_unlock() const;

  /// Removes this holder, if it is there still, and wakes the waiters: one script compares and removes, so that a newer
  /// holder is never broken. False: it holds nothing any more, and nothing was changed. Of a read-write lock only the
  /// side that it was seen on ends. Otherwise as `force_unlock`; holds of other owners are not concerned.
  /// \throws lock_error `bad_argument`: a holder without a client, or a lock of several members.
  bool force_unlock_if(holder const& who) const;

  /// Does anybody hold it? Asks the server.
  bool is_locked() const;
  /// Does the calling thread hold it? Asks the server.
  bool is_held_by_current_thread() const;
  /// Does this owner, of this client, hold it? Asks the server.
  bool is_held_by(latchkey::owner who) const;
  /// How often the calling thread holds it. Asks the server.
  int hold_count() const;
  /// How often this owner holds it. Asks the server.
  int hold_count(latchkey::owner who) const;
  /// Until the holder's lease ends; empty: free. `milliseconds::max()`: the key has no time to live.
  std::optional<milliseconds> remaining_time_to_live() const;
  /// The latest fencing token that a fenced lock of this name has given, by any client; 0: none yet. Asks the server.
  ///
  /// It says nothing about who holds the lock: a holder takes his token from `lease::fencing_token`.
  /// \throws lock_error `bad_argument`: not made by `client::get_fenced_lock`. `wrong_type`, `server_error`: what
  /// stands in the place of the counter is no counter.
  std::uint64_t get_token() const;
  /// The name as given to the client. No I/O.
  std::string const& name() const noexcept;

  /// A *TimedLockable* whose `unlock` reports a failure as an event instead of throwing.
  std_mutex as_mutex() const;

  /// Waits and gives a lease; empty if still busy when `acquire_options::wait` ended.
  /// \throws lock_error `would_deadlock`: the wait has no limit and the calling thread itself holds what it would wait
  /// for: this lock, or another side of it; or the side that it shares, if a caller who waits for the other side stands
  /// before it.
  [[nodiscard]] lease acquire(acquire_options options = {}) const;
  /// The same; also gives up, with an empty lease, when a stop is asked for.
  [[nodiscard]] lease acquire(acquire_options options, std::stop_token stop) const;

  /// Completes with `void(error_code)` when `who` holds it; renewed by the watchdog.
  template <asio::completion_token_for<void(error_code)> Token = asio::deferred_t>
  auto async_lock(latchkey::owner who, Token&& token = asio::deferred_t{}) const {
    return detail::initiate_on(get_executor(), key_, start_lock, token, who, std::nullopt);
  }
  /// The same with a fixed lease.
  template <asio::completion_token_for<void(error_code)> Token = asio::deferred_t>
  auto async_lock(latchkey::owner who, timespan lease, Token&& token = asio::deferred_t{}) const {
    return detail::initiate_on(get_executor(), key_, start_lock, token, who, lease);
  }

  /// One attempt. Completes with `void(error_code, bool)`.
  template <asio::completion_token_for<void(error_code, bool)> Token = asio::deferred_t>
  auto async_try_lock(latchkey::owner who, Token&& token = asio::deferred_t{}) const {
    return detail::initiate_on(get_executor(), key_, start_try_lock, token, who, milliseconds::zero(), std::nullopt);
  }
  /// Waits at most `wait`.
  template <asio::completion_token_for<void(error_code, bool)> Token = asio::deferred_t>
  auto async_try_lock(latchkey::owner who, timespan wait, Token&& token = asio::deferred_t{}) const {
    return detail::initiate_on(get_executor(), key_, start_try_lock, token, who, wait, std::nullopt);
  }
  /// The same with a fixed lease.
  template <asio::completion_token_for<void(error_code, bool)> Token = asio::deferred_t>
  auto async_try_lock(latchkey::owner who, timespan wait, timespan lease, Token&& token = asio::deferred_t{}) const {
    return detail::initiate_on(get_executor(), key_, start_try_lock, token, who, wait, lease);
  }

  /// As `unlock`, for the latest hold of `who` that no lease shows. Completes with `void(error_code)`.
  template <asio::completion_token_for<void(error_code)> Token = asio::deferred_t>
  auto async_unlock(latchkey::owner who, Token&& token = asio::deferred_t{}) const {
    return detail::initiate_on(get_executor(), key_, start_unlock, token, who);
  }

  /// As `force_unlock`. Completes with `void(error_code, bool)`.
  template <asio::completion_token_for<void(error_code, bool)> Token = asio::deferred_t>
  auto async_force_unlock(Token&& token = asio::deferred_t{}) const {
    return detail::initiate_on(get_executor(), key_, start_force_unlock, token);
  }

  /// As `is_locked`. Completes with `void(error_code, bool)`.
  template <asio::completion_token_for<void(error_code, bool)> Token = asio::deferred_t>
  auto async_is_locked(Token&& token = asio::deferred_t{}) const {
    return detail::initiate_on(get_executor(), key_, start_query<bool>, token, detail::query_type::is_locked,
                               std::nullopt);
  }
  /// As `is_held_by`. Completes with `void(error_code, bool)`.
  template <asio::completion_token_for<void(error_code, bool)> Token = asio::deferred_t>
  auto async_is_held_by(latchkey::owner who, Token&& token = asio::deferred_t{}) const {
    return detail::initiate_on(get_executor(), key_, start_query<bool>, token, detail::query_type::is_held_by, who);
  }
  /// As `hold_count`. Completes with `void(error_code, int)`.
  template <asio::completion_token_for<void(error_code, int)> Token = asio::deferred_t>
  auto async_hold_count(latchkey::owner who, Token&& token = asio::deferred_t{}) const {
    return detail::initiate_on(get_executor(), key_, start_query<int>, token, detail::query_type::hold_count, who);
  }
  /// As `remaining_time_to_live`. Completes with `void(error_code, std::optional<milliseconds>)`.
  template <asio::completion_token_for<void(error_code, std::optional<milliseconds>)> Token = asio::deferred_t>
  auto async_remaining_time_to_live(Token&& token = asio::deferred_t{}) const {
    return detail::initiate_on(get_executor(), key_, start_query<std::optional<milliseconds>>, token,
                               detail::query_type::time_to_live, std::nullopt);
  }

  /// As `get_token`. Completes with `void(error_code, std::uint64_t)`.
  template <asio::completion_token_for<void(error_code, std::uint64_t)> Token = asio::deferred_t>
  auto async_get_token(Token&& token = asio::deferred_t{}) const {
    return detail::initiate_on(get_executor(), key_, start_query<std::uint64_t>, token, detail::query_type::token,
                               std::nullopt);
  }

  /// As `acquire`. Completes with `void(error_code, lease)`; to be preferred under `||` and in parallel groups.
  template <asio::completion_token_for<void(error_code, lease)> Token = asio::deferred_t>
  auto async_acquire(Token&& token = asio::deferred_t{}) const {
    return detail::initiate_on(get_executor(), key_, start_acquire, token, acquire_options{});
  }
  /// The same with options.
  template <asio::completion_token_for<void(error_code, lease)> Token = asio::deferred_t>
  auto async_acquire(acquire_options options, Token&& token = asio::deferred_t{}) const {
    return detail::initiate_on(get_executor(), key_, start_acquire, token, options);
  }

  /// Where handlers without an executor of their own run: the client's executor.
  executor_type get_executor() const;

  /// The same lock: one name of one client.
  friend LATCHKEY_EXPORT bool operator==(distributed_lock const& a, distributed_lock const& b) noexcept;
  /// Equal for equal handles. `std::hash` and `boost::hash` use it.
  friend LATCHKEY_EXPORT std::size_t hash_value(distributed_lock const& one) noexcept;

 private:
  friend class client;
  friend class read_write_lock;
  friend class std_mutex;
  explicit distributed_lock(std::shared_ptr<detail::lock_key const> key) noexcept;
  using key_ptr = std::shared_ptr<detail::lock_key const>;

  template <class... Values>
  using handler = detail::handler<void(error_code, Values...)>;
  static void start_lock(key_ptr const&, handler<>, latchkey::owner, std::optional<milliseconds>);
  static void start_try_lock(key_ptr const&, handler<bool>, latchkey::owner, milliseconds, std::optional<milliseconds>);
  static void start_unlock(key_ptr const&, handler<>, latchkey::owner);
  static void start_force_unlock(key_ptr const&, handler<bool>);
  static void start_acquire(key_ptr const&, handler<latchkey::lease>, acquire_options);
  template <class Value>
  static void start_query(key_ptr const&, handler<Value>, detail::query_type, std::optional<latchkey::owner>);

  key_ptr key_;
};

/// A `distributed_lock` for `std::lock_guard`, `std::unique_lock` and `std::scoped_lock`.
///
/// Their destructors must not throw, so a failed `unlock` here is an event (`event_type::unlock_failed`), and
/// the lease ends the hold at the latest. A guard on the lock itself would end the process instead. Nor do they expect
/// a timed try to throw because a server did not answer: here that is false, and an event.
class LATCHKEY_EXPORT std_mutex {
 public:
  /// Of this lock. No I/O.
  explicit std_mutex(distributed_lock lock) noexcept;

  /// As `distributed_lock::lock`.
  void lock() const;
  /// As `distributed_lock::try_lock`.
  [[nodiscard]] bool try_lock() const;
  /// As `distributed_lock::try_lock_for`, but also false where the server did not answer in time or could not be
  /// reached (`timeout`, `connection_lost`, `connect_failed`, `no_master`): an event, `warning`, says which and why.
  template <class Rep, class Period>
  [[nodiscard]] bool try_lock_for(std::chrono::duration<Rep, Period> wait) const {
    return try_for(wait);
  }
  /// As `try_lock_for`, until a time of any clock; one that does not fit the clock is for ever.
  template <class Clock, class Duration>
  [[nodiscard]] bool try_lock_until(std::chrono::time_point<Clock, Duration> when) const {
    return try_for(detail::time_until(when));
  }
  /// As `distributed_lock::unlock`, but a failure is an event.
  void unlock() const noexcept;

 private:
  bool try_for(timespan wait) const;

  distributed_lock lock_;
};

}  // namespace latchkey

template <>
struct std::hash<latchkey::distributed_lock> {
  std::size_t operator()(latchkey::distributed_lock const& one) const noexcept { return hash_value(one); }
};
