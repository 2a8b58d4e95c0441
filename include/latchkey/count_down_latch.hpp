#pragma once

#include <latchkey/acquire_options.hpp>
#include <latchkey/boost_guard.hpp>
#include <latchkey/detail/initiate.hpp>
#include <latchkey/error.hpp>
#include <latchkey/fwd.hpp>

#include <cstdint>
#include <memory>
#include <string>

namespace latchkey {

/// A count on one name that waiters of many processes see reach zero.
///
/// A name without a count counts as zero: waiting for it ends at once. At zero the key is deleted, and a new count may
/// be set. A handle is cheap to copy and all its members are const; two handles of one name and client compare equal.
///
/// \par Waking
/// Zero is told by a message, whereupon one request answers all who wait in this client; if a new count has been set
/// before that runs they wait for it, too, as Redisson's waiters do: let every round have a name of its own. So is a
/// deletion by Redisson's `delete`; a key that goes in another way (`DEL`, the end of a time to live) is found within 5
/// s.
///
/// \par Lost answers
/// `count_down` and `try_set_count` leave a small key of their own on the server for 20 s. A request whose answer was
/// lost looks for it before it changes anything, so that no call counts twice. After 20 s without a connection nobody
/// can tell: `connection_lost` then means that it ran or that it did not.
///
/// \par Errors, threads
/// As `semaphore` has them.
///
/// \par Cancellation
/// `async_wait` and `async_wait_for` accept terminal, partial and total cancellation and complete with
/// `asio::error::operation_aborted`. The others ignore it.
///
/// \par Source
/// Redisson's `RCountDownLatch`: a string `name`, messages on `redisson_countdownlatch__channel__{name}`.
class LATCHKEY_EXPORT count_down_latch {
 public:
  using executor_type = asio::any_io_executor;  ///< of handlers without an executor

  /// Sets the count if the name has none. False: it has one, nothing was changed.
  /// \throws lock_error `bad_argument` for less than 1: a latch at zero has no key. See *Lost answers*.
  bool try_set_count(std::int64_t count) const;
  /// Lowers the count by one; at zero deletes it and wakes all waiters. Without a count: does nothing.
  ///
  /// After `timeout`, and `connection_lost` before the 20 s of *Lost answers*, it goes on in the background: it is not
  /// to be repeated.
  void count_down() const;
  /// The count; zero if there is none. Asks the server.
  std::int64_t count() const;
  /// Waits without limit for zero.
  void wait() const;
  /// Waits at most `wait`, connecting included; zero or less asks once. False: not yet zero.
  [[nodiscard]] bool wait_for(timespan wait) const;

  /// The name as given to the client. No I/O.
  std::string const& name() const noexcept;

  /// As `try_set_count`. Completes with `void(error_code, bool)`.
  template <asio::completion_token_for<void(error_code, bool)> Token = asio::deferred_t>
  auto async_try_set_count(std::int64_t count, Token&& token = asio::deferred_t{}) const {
    return detail::initiate_on(get_executor(), key_, start_try_set, token, count);
  }
  /// As `count_down`. Completes with `void(error_code)`.
  template <asio::completion_token_for<void(error_code)> Token = asio::deferred_t>
  auto async_count_down(Token&& token = asio::deferred_t{}) const {
    return detail::initiate_on(get_executor(), key_, start_count_down, token);
  }
  /// As `count`. Completes with `void(error_code, std::int64_t)`.
  template <asio::completion_token_for<void(error_code, std::int64_t)> Token = asio::deferred_t>
  auto async_count(Token&& token = asio::deferred_t{}) const {
    return detail::initiate_on(get_executor(), key_, start_count, token);
  }
  /// As `wait`. Completes with `void(error_code)`.
  template <asio::completion_token_for<void(error_code)> Token = asio::deferred_t>
  auto async_wait(Token&& token = asio::deferred_t{}) const {
    return detail::initiate_on(get_executor(), key_, start_wait, token);
  }
  /// As `wait_for`. Completes with `void(error_code, bool)`.
  template <asio::completion_token_for<void(error_code, bool)> Token = asio::deferred_t>
  auto async_wait_for(timespan wait, Token&& token = asio::deferred_t{}) const {
    return detail::initiate_on(get_executor(), key_, start_wait_for, token, wait);
  }

  /// Where handlers without an executor of their own run: the client's executor.
  executor_type get_executor() const;

  /// The same latch: one name of one client.
  friend LATCHKEY_EXPORT bool operator==(count_down_latch const& a, count_down_latch const& b) noexcept;

 private:
  friend class client;
  using key_ptr = std::shared_ptr<detail::lock_key const>;
  explicit count_down_latch(key_ptr key) noexcept;

  static void start_try_set(key_ptr const& key, detail::handler<void(error_code, bool)> done, std::int64_t count);
  static void start_count_down(key_ptr const& key, detail::handler<void(error_code)> done);
  static void start_count(key_ptr const& key, detail::handler<void(error_code, std::int64_t)> done);
  static void start_wait(key_ptr const& key, detail::handler<void(error_code)> done);
  static void start_wait_for(key_ptr const& key, detail::handler<void(error_code, bool)> done, milliseconds wait);

  key_ptr key_;
};

}  // namespace latchkey
