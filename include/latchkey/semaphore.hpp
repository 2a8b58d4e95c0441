#pragma once

#include <latchkey/acquire_options.hpp>
#include <latchkey/boost_guard.hpp>
#include <latchkey/detail/initiate.hpp>
#include <latchkey/error.hpp>
#include <latchkey/fwd.hpp>

#include <memory>
#include <optional>
#include <string>

namespace latchkey {

/// A number of permits on one name, shared by every process that uses the same Redis.
///
/// Permits have no owner and no lease: whoever took some gives them back with `release`, and those of a process that
/// dies are gone, as in Redisson. Where that matters use `permit_semaphore`. Nobody checks that no more are released
/// than were taken: the number then grows.
///
/// A handle is cheap to copy and all its members are const. Two handles of one name and client compare equal.
///
/// \par Order
/// The waiters of one client are served in the order of their calls: the first one waits for all its permits, and
/// nobody passes it, a call that does not wait neither. Between clients the quicker one wins, with one bound: who
/// waits for more than one permit and was told that there are too few claims them, with a key that lasts 2 s and that
/// he renews once a second. Other clients then take only what leaves as many as he claimed, so that they cannot pass
/// him for ever. One claim stands at a time. It is withdrawn when the last waiter of its client gives up (cancelled,
/// timed out, its client closed); that of a process that died keeps permits idle for at most 2 s, and other clients
/// are told meanwhile that there are too few. Who asks for more than there will ever be keeps the others waiting for as
/// long as he waits. Redisson's clients do not look at claims.
///
/// \par Waking
/// A release is told by a message. A message can be lost with its connection: every waiter looks again after a new
/// connection, and every 10 s.
///
/// \par Lost answers
/// What changes the number leaves a small key of its own on the server for 20 s. A request whose answer was lost looks
/// for it before it changes anything, so that no call counts twice. After 20 s without a connection nobody can tell:
/// `connection_lost` then means that it ran or that it did not. A waiting call that was cancelled or timed out while
/// its request was under way gives back in the background what it may still be granted; without a connection for 20 s
/// those permits stay taken.
///
/// \par Errors
/// Blocking calls throw `lock_error`; asynchronous ones complete with the same code. Common to all:
/// `closed`, `bad_argument` (nothing was sent), `timeout`, `connection_lost`, `connect_failed`, `no_master`,
/// `tls_failed`, `auth_failed`, `wrong_type`, `read_only`, `server_error` (also for a value that is no number),
/// `protocol_error`; blocking ones also `would_deadlock` on a thread that runs the client's executor. After a server's
/// refusal nothing has changed.
///
/// \par Cancellation
/// `async_acquire` and `async_try_acquire` accept terminal, partial and total cancellation and complete with
/// `asio::error::operation_aborted`; what they were granted meanwhile is given back. All others ignore it.
///
/// \par Threads
/// Distinct and shared objects: safe.
///
/// \par Source
/// Redisson's `RSemaphore`: a string `name` with the number of free permits, messages on `redisson_sc:{name}`.
class LATCHKEY_EXPORT semaphore {
 public:
  using executor_type = asio::any_io_executor;  ///< of handlers without an executor

  /// Sets the number of permits if the name has none yet. False: it has, nothing was changed. Zero is allowed.
  /// \throws lock_error `bad_argument` for a negative number; see *Lost answers*.
  bool try_set_permits(int permits) const;
  /// Adds permits, or takes some away for good if negative; the number of free ones may fall below zero. See *Lost
  /// answers*. On the server: a time to live of the key, which others may have set, ends.
  void add_permits(int permits) const;
  /// Takes all free permits, for good, and says how many those were (negative if it was below zero; of more than an
  /// `int` has, the largest one). See *Lost answers*.
  int drain_permits() const;
  /// How many are free; may be negative. Asks the server.
  int available_permits() const;

  /// Waits without limit until `n` permits are free together, and takes them.
  /// \throws lock_error `bad_argument` for less than 1. `connection_lost`: see *Lost answers*.
  void acquire(int n = 1) const;
  /// One attempt, no waiting. False: too few, or claimed (see *Order*), or others of this client wait.
  [[nodiscard]] bool try_acquire(int n = 1) const;
  /// Waits at most `wait`, connecting included; zero or less is one attempt.
  [[nodiscard]] bool try_acquire(int n, timespan wait) const;
  /// The same for one permit.
  [[nodiscard]] bool try_acquire_for(timespan wait) const;
  /// Gives permits back and wakes waiters. On the server: one script.
  ///
  /// \throws lock_error `bad_argument` for less than 1. After `timeout`, and `connection_lost` before the 20 s of *Lost
  /// answers*, it goes on in the background: it is not to be repeated.
  void release(int n = 1) const;

  /// The name as given to the client. No I/O.
  std::string const& name() const noexcept;

  /// As `try_set_permits`. Completes with `void(error_code, bool)`.
  template <asio::completion_token_for<void(error_code, bool)> Token = asio::deferred_t>
  auto async_try_set_permits(int permits, Token&& token = asio::deferred_t{}) const {
    return detail::initiate_on(get_executor(), key_, start_try_set, token, permits);
  }
  /// As `add_permits`. Completes with `void(error_code)`.
  template <asio::completion_token_for<void(error_code)> Token = asio::deferred_t>
  auto async_add_permits(int permits, Token&& token = asio::deferred_t{}) const {
    return detail::initiate_on(get_executor(), key_, start_add, token, permits);
  }
  /// As `drain_permits`. Completes with `void(error_code, int)`.
  template <asio::completion_token_for<void(error_code, int)> Token = asio::deferred_t>
  auto async_drain_permits(Token&& token = asio::deferred_t{}) const {
    return detail::initiate_on(get_executor(), key_, start_drain, token);
  }
  /// As `available_permits`. Completes with `void(error_code, int)`.
  template <asio::completion_token_for<void(error_code, int)> Token = asio::deferred_t>
  auto async_available_permits(Token&& token = asio::deferred_t{}) const {
    return detail::initiate_on(get_executor(), key_, start_available, token);
  }
  /// As `acquire`. Completes with `void(error_code)`.
  template <asio::completion_token_for<void(error_code)> Token = asio::deferred_t>
  auto async_acquire(Token&& token = asio::deferred_t{}) const {
    return detail::initiate_on(get_executor(), key_, start_acquire, token, 1);
  }
  /// The same for `n` permits.
  template <asio::completion_token_for<void(error_code)> Token = asio::deferred_t>
  auto async_acquire(int n, Token&& token = asio::deferred_t{}) const {
    return detail::initiate_on(get_executor(), key_, start_acquire, token, n);
  }
  /// As `try_acquire`. Completes with `void(error_code, bool)`.
  template <asio::completion_token_for<void(error_code, bool)> Token = asio::deferred_t>
  auto async_try_acquire(Token&& token = asio::deferred_t{}) const {
    return detail::initiate_on(get_executor(), key_, start_try_acquire, token, 1, milliseconds::zero());
  }
  /// The same for `n` permits.
  template <asio::completion_token_for<void(error_code, bool)> Token = asio::deferred_t>
  auto async_try_acquire(int n, Token&& token = asio::deferred_t{}) const {
    return detail::initiate_on(get_executor(), key_, start_try_acquire, token, n, milliseconds::zero());
  }
  /// Waits at most `wait`.
  template <asio::completion_token_for<void(error_code, bool)> Token = asio::deferred_t>
  auto async_try_acquire(int n, timespan wait, Token&& token = asio::deferred_t{}) const {
    return detail::initiate_on(get_executor(), key_, start_try_acquire, token, n, wait);
  }
  /// As `try_acquire_for`. Completes with `void(error_code, bool)`.
  template <asio::completion_token_for<void(error_code, bool)> Token = asio::deferred_t>
  auto async_try_acquire_for(timespan wait, Token&& token = asio::deferred_t{}) const {
    return detail::initiate_on(get_executor(), key_, start_try_acquire, token, 1, wait);
  }
  /// As `release`. Completes with `void(error_code)`.
  template <asio::completion_token_for<void(error_code)> Token = asio::deferred_t>
  auto async_release(Token&& token = asio::deferred_t{}) const {
    return detail::initiate_on(get_executor(), key_, start_release, token, 1);
  }
  /// The same for `n` permits.
  template <asio::completion_token_for<void(error_code)> Token = asio::deferred_t>
  auto async_release(int n, Token&& token = asio::deferred_t{}) const {
    return detail::initiate_on(get_executor(), key_, start_release, token, n);
  }

  /// Where handlers without an executor of their own run: the client's executor.
  executor_type get_executor() const;

  /// The same semaphore: one name of one client.
  friend LATCHKEY_EXPORT bool operator==(semaphore const& a, semaphore const& b) noexcept;

 private:
  friend class client;
  using key_ptr = std::shared_ptr<detail::lock_key const>;
  explicit semaphore(key_ptr key) noexcept;

  static void start_try_set(key_ptr const& key, detail::handler<void(error_code, bool)> done, int permits);
  static void start_add(key_ptr const& key, detail::handler<void(error_code)> done, int permits);
  static void start_drain(key_ptr const& key, detail::handler<void(error_code, int)> done);
  static void start_available(key_ptr const& key, detail::handler<void(error_code, int)> done);
  static void start_acquire(key_ptr const& key, detail::handler<void(error_code)> done, int n);
  static void start_try_acquire(key_ptr const& key, detail::handler<void(error_code, bool)> done, int n,
                                milliseconds wait);
  static void start_release(key_ptr const& key, detail::handler<void(error_code)> done, int n);

  key_ptr key_;
};

}  // namespace latchkey
