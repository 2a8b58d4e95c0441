#pragma once

#include <latchkey/acquire_options.hpp>
#include <latchkey/boost_guard.hpp>
#include <latchkey/detail/initiate.hpp>
#include <latchkey/error.hpp>
#include <latchkey/fwd.hpp>
#include <latchkey/permit.hpp>

#include <memory>
#include <optional>
#include <stop_token>
#include <string>

namespace latchkey {

/// Permits with ids and leases on one name, shared by every process that uses the same Redis.
///
/// A permit whose lease ends returns by itself: whoever next asks for anything of this name takes it back and tells
/// the waiters. A permit without a lease never ends by itself, as in Redisson; then one of a process that dies is gone
/// until somebody releases it by its id. Leases are counted by the server's clock (Redisson counts by its own, so its
/// clients' clocks should agree with the server's).
///
/// Which form to take: `acquire_permit` gives an object that releases itself and knows when it is lost; `acquire` and
/// `try_acquire` give the id alone, to be stored or passed on, and this client then remembers nothing of it.
///
/// \par Ids
/// 32 hexadecimal digits (16 bytes on the server), made from the client's UUID and a number that is never used twice.
///
/// \par Order, waking
/// The waiters of one client are served in the order of their calls. A release is told by a message; waiters also wake
/// when the next lease ends, after a new connection, and every 10 s.
///
/// \par Lost answers
/// A repeated acquire finds the permit that its first copy was granted: exact, whenever it comes. `try_release`,
/// `release`, `try_set_permits`, `set_permits` and `add_permits` leave a small key of their own on the server for 20 s,
/// by which a request whose answer was lost is recognised, so that no call counts twice. After 20 s without a
/// connection `connection_lost` means that it ran or that it did not.
///
/// \par Errors, threads
/// As `semaphore` has them.
///
/// \par Cancellation
/// The acquiring members accept terminal, partial and total cancellation and complete with
/// `asio::error::operation_aborted`; a permit granted meanwhile is given back. Under `||` and in parallel groups use
/// `async_acquire_permit`: an id that the group throws away is a permit that nobody knows. All others ignore it.
///
/// \par Source
/// Redisson's `RPermitExpirableSemaphore`: a string `name` with the number of free permits, a sorted set
/// `{name}:timeout` of ids by the end of their leases, messages on `redisson_sc:{name}`.
class LATCHKEY_EXPORT permit_semaphore {
 public:
  using executor_type = asio::any_io_executor;  ///< of handlers without an executor

  /// Sets the number of permits if the name has none yet. False: it has, nothing was changed.
  /// \throws lock_error `bad_argument` for a negative number. See *Lost answers*.
  bool try_set_permits(int permits) const;
  /// Makes the number of all permits, taken ones included, this. If more are taken, the number of free ones falls below
  /// zero, and releases bring it back.
  /// \throws lock_error `bad_argument` for a negative number. See *Lost answers*.
  void set_permits(int permits) const;
  /// Adds permits, or takes some away for good if negative. See *Lost answers*.
  void add_permits(int permits) const;
  /// How many are free; may be negative. Takes back those whose leases have ended.
  int available_permits() const;
  /// How many are taken. Takes back those whose leases have ended.
  int acquired_permits() const;

  /// Waits without limit and gives the id of a permit without a lease.
  [[nodiscard]] std::string acquire() const;
  /// The same with a lease.
  /// \throws lock_error `bad_argument`: not more than zero or longer than ten years. `lease_lost`: the lease had ended
  /// before the answer came.
  [[nodiscard]] std::string acquire(timespan lease) const;
  /// One attempt, no waiting. Empty: none is free, or others of this client wait.
  [[nodiscard]] std::optional<std::string> try_acquire() const;
  /// Waits at most `wait`, connecting included; zero or less is one attempt.
  [[nodiscard]] std::optional<std::string> try_acquire(timespan wait) const;
  /// The same with a lease.
  [[nodiscard]] std::optional<std::string> try_acquire(timespan wait, timespan lease) const;

  /// Gives a permit back, whoever took it. A `permit` of this client that shows it is lost when the request is sent,
  /// also if the server then refuses it: what that leaves is asked for once more in the background. Refused for good (a
  /// right is missing), a permit without a lease stays taken until somebody releases this id.
  /// \throws lock_error `lease_lost`: there is no such permit (any more). `bad_argument`: not 32 hexadecimal digits.
  /// After `timeout`, and `connection_lost` before the 20 s of *Lost answers*, it goes on in the background.
  void release(std::string const& id) const;
  /// The same; false: there is no such permit, or its lease had ended.
  bool try_release(std::string const& id) const;
  /// From now a lease of this length, shorter or longer than before. False: there is no such permit (any more).
  ///
  /// Of a shorter lease the waiters of this client hear; others sleep until the end that they were told. A
  /// `permit` of this client that shows it goes by the new lease: a shorter one from when it is sent, a longer one from
  /// the answer; where there is none any more it is lost. Safe to repeat.
  /// \throws lock_error `not_synced`: the server has it, too few replicas have confirmed that, and a `permit` goes by
  ///         the shorter of both leases.
  bool update_lease_time(std::string const& id, timespan lease) const;

  /// Waits and gives a permit that releases itself; empty if none was free when `acquire_options::wait` ended.
  ///
  /// Without a lease the permit lasts until its release; there is nothing to renew. `acquire_options::owner` means
  /// nothing here: every permit is its own.
  /// \throws lock_error `bad_argument`: also for `max_hold`, `lock_delay` and `progress_within`.
  [[nodiscard]] permit acquire_permit(acquire_options options = {}) const;
  /// The same; also gives up, with an empty permit, when a stop is asked for.
  [[nodiscard]] permit acquire_permit(acquire_options options, std::stop_token stop) const;

  /// The name as given to the client. No I/O.
  std::string const& name() const noexcept;

  /// As `try_set_permits`. Completes with `void(error_code, bool)`.
  template <asio::completion_token_for<void(error_code, bool)> Token = asio::deferred_t>
  auto async_try_set_permits(int permits, Token&& token = asio::deferred_t{}) const {
    return detail::initiate_on(get_executor(), key_, start_try_set, token, permits);
  }
  /// As `set_permits`. Completes with `void(error_code)`.
  template <asio::completion_token_for<void(error_code)> Token = asio::deferred_t>
  auto async_set_permits(int permits, Token&& token = asio::deferred_t{}) const {
    return detail::initiate_on(get_executor(), key_, start_set, token, permits);
  }
  /// As `add_permits`. Completes with `void(error_code)`.
  template <asio::completion_token_for<void(error_code)> Token = asio::deferred_t>
  auto async_add_permits(int permits, Token&& token = asio::deferred_t{}) const {
    return detail::initiate_on(get_executor(), key_, start_add, token, permits);
  }
  /// As `available_permits`. Completes with `void(error_code, int)`.
  template <asio::completion_token_for<void(error_code, int)> Token = asio::deferred_t>
  auto async_available_permits(Token&& token = asio::deferred_t{}) const {
    return detail::initiate_on(get_executor(), key_, start_available, token);
  }
  /// As `acquired_permits`. Completes with `void(error_code, int)`.
  template <asio::completion_token_for<void(error_code, int)> Token = asio::deferred_t>
  auto async_acquired_permits(Token&& token = asio::deferred_t{}) const {
    return detail::initiate_on(get_executor(), key_, start_acquired, token);
  }

  /// As `acquire`. Completes with `void(error_code, std::string)`.
  template <asio::completion_token_for<void(error_code, std::string)> Token = asio::deferred_t>
  auto async_acquire(Token&& token = asio::deferred_t{}) const {
    return detail::initiate_on(get_executor(), key_, start_acquire, token, std::nullopt);
  }
  /// The same with a lease.
  template <asio::completion_token_for<void(error_code, std::string)> Token = asio::deferred_t>
  auto async_acquire(timespan lease, Token&& token = asio::deferred_t{}) const {
    return detail::initiate_on(get_executor(), key_, start_acquire, token, lease);
  }
  /// As `try_acquire`. Completes with `void(error_code, std::optional<std::string>)`.
  template <asio::completion_token_for<void(error_code, std::optional<std::string>)> Token = asio::deferred_t>
  auto async_try_acquire(Token&& token = asio::deferred_t{}) const {
    return detail::initiate_on(get_executor(), key_, start_try_acquire, token, milliseconds::zero(), std::nullopt);
  }
  /// Waits at most `wait`.
  template <asio::completion_token_for<void(error_code, std::optional<std::string>)> Token = asio::deferred_t>
  auto async_try_acquire(timespan wait, Token&& token = asio::deferred_t{}) const {
    return detail::initiate_on(get_executor(), key_, start_try_acquire, token, wait, std::nullopt);
  }
  /// The same with a lease.
  template <asio::completion_token_for<void(error_code, std::optional<std::string>)> Token = asio::deferred_t>
  auto async_try_acquire(timespan wait, timespan lease, Token&& token = asio::deferred_t{}) const {
    return detail::initiate_on(get_executor(), key_, start_try_acquire, token, wait, lease);
  }

  /// As `release`. Completes with `void(error_code)`.
  template <asio::completion_token_for<void(error_code)> Token = asio::deferred_t>
  auto async_release(std::string id, Token&& token = asio::deferred_t{}) const {
    return detail::initiate_on(get_executor(), key_, start_release, token, std::move(id));
  }
  /// As `try_release`. Completes with `void(error_code, bool)`.
  template <asio::completion_token_for<void(error_code, bool)> Token = asio::deferred_t>
  auto async_try_release(std::string id, Token&& token = asio::deferred_t{}) const {
    return detail::initiate_on(get_executor(), key_, start_try_release, token, std::move(id));
  }
  /// As `update_lease_time`. Completes with `void(error_code, bool)`.
  template <asio::completion_token_for<void(error_code, bool)> Token = asio::deferred_t>
  auto async_update_lease_time(std::string id, timespan lease, Token&& token = asio::deferred_t{}) const {
    return detail::initiate_on(get_executor(), key_, start_update, token, std::move(id), lease);
  }

  /// As `acquire_permit`. Completes with `void(error_code, permit)`.
  template <asio::completion_token_for<void(error_code, permit)> Token = asio::deferred_t>
  auto async_acquire_permit(Token&& token = asio::deferred_t{}) const {
    return detail::initiate_on(get_executor(), key_, start_acquire_permit, token, acquire_options{});
  }
  /// The same with options.
  template <asio::completion_token_for<void(error_code, permit)> Token = asio::deferred_t>
  auto async_acquire_permit(acquire_options options, Token&& token = asio::deferred_t{}) const {
    return detail::initiate_on(get_executor(), key_, start_acquire_permit, token, options);
  }

  /// Where handlers without an executor of their own run: the client's executor.
  executor_type get_executor() const;

  /// The same semaphore: one name of one client.
  friend LATCHKEY_EXPORT bool operator==(permit_semaphore const& a, permit_semaphore const& b) noexcept;

 private:
  friend class client;
  using key_ptr = std::shared_ptr<detail::lock_key const>;
  explicit permit_semaphore(key_ptr key) noexcept;

  struct give_permit;

  static void start_try_set(key_ptr const& key, detail::handler<void(error_code, bool)> done, int permits);
  static void start_set(key_ptr const& key, detail::handler<void(error_code)> done, int permits);
  static void start_add(key_ptr const& key, detail::handler<void(error_code)> done, int permits);
  static void start_available(key_ptr const& key, detail::handler<void(error_code, int)> done);
  static void start_acquired(key_ptr const& key, detail::handler<void(error_code, int)> done);
  static void start_acquire(key_ptr const& key, detail::handler<void(error_code, std::string)> done,
                            std::optional<milliseconds> lease);
  static void start_try_acquire(key_ptr const& key, detail::handler<void(error_code, std::optional<std::string>)> done,
                                milliseconds wait, std::optional<milliseconds> lease);
  static void start_release(key_ptr const& key, detail::handler<void(error_code)> done, std::string id);
  static void start_try_release(key_ptr const& key, detail::handler<void(error_code, bool)> done, std::string id);
  static void start_update(key_ptr const& key, detail::handler<void(error_code, bool)> done, std::string id,
                           milliseconds lease);
  static void start_acquire_permit(key_ptr const& key, detail::handler<void(error_code, permit)> done,
                                   acquire_options options);

  key_ptr key_;
};

}  // namespace latchkey
