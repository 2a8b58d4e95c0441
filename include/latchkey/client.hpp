#pragma once

#include <latchkey/config.hpp>
#include <latchkey/detail/initiate.hpp>
#include <latchkey/distributed_lock.hpp>
#include <latchkey/fwd.hpp>
#include <latchkey/owner.hpp>
#include <latchkey/stats.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/execution_context.hpp>

#include <concepts>
#include <memory>
#include <string>
#include <string_view>

namespace latchkey {

/// Connections to one Redis server and everything that is held and waited for through them.
///
/// URIs: `redis://[user[:password]@]host[:port][/db]`, `unix:///path/to.sock[?db=n]`, and `embedded:`, which
/// starts a private `redis-server` on a temporary Unix socket and stops it with the client (for first steps
/// and tests). `rediss://`, `redis-sentinel://` and `redis-cluster://` are read, but not supported yet.
///
/// \par Threads
/// Safe to use from several threads, but for moving and destroying it.
class LATCHKEY_EXPORT client {
 public:
  using executor_type = asio::any_io_executor;

  /// With an I/O thread of its own. Does not connect yet. Copies the URI.
  /// \throws lock_error `bad_uri`, `bad_argument` (a setting out of range); the text says what and where.
  explicit client(std::string_view uri, config settings = {});

  /// On the caller's executor: starts no thread. An open connection counts as work: `run()` returns after `close`.
  client(asio::any_io_executor executor, std::string_view uri, config settings = {});

  /// On the caller's execution context, for instance an `io_context`.
  template <class Context>
  requires std::derived_from<Context, asio::execution_context> client(Context& context, std::string_view uri,
                                                                      config settings = {})
      : client(asio::any_io_executor(context.get_executor()), uri, std::move(settings)) {}

  client(client&&) noexcept;
  client& operator=(client&&) noexcept;
  /// As `close`; never throws.
  ~client();

  /// A reentrant lock. No I/O.
  /// \throws lock_error `bad_argument` if the name is empty or longer than 64 KiB. Any bytes are allowed in it.
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

  /// A new owner; same as `owner::make()`.
  owner new_owner() const;

  /// The UUID of this client: what stands before the colon in the field of a hold.
  std::string const& id() const;

  /// Counters and gauges of this moment.
  stats snapshot() const;

  /// Where handlers without an executor of their own run.
  executor_type get_executor() const;

  /// Fails waiters with `errc::closed`, releases what leases of this client hold, finishes pending releases and
  /// joins the I/O thread; takes at most `config::close_timeout`. What could not be released ends with its lease.
  /// Never waits for a thread that runs the caller's executor. A second call does nothing.
  void close();

  /// As `close`. Completes with `void(error_code)`. Ignores cancellation.
  template <asio::completion_token_for<void(error_code)> Token = asio::deferred_t>
  auto async_close(Token&& token = asio::deferred_t{}) const {
    return detail::initiate<void(error_code)>(
        get_executor(), token,
        [core = core_](detail::handler<void(error_code)> done) { start_close(core, std::move(done)); });
  }

 private:
  distributed_lock make_lock(std::string name, detail::kind const& which) const;
  static void start_close(std::shared_ptr<detail::core> const& core, detail::handler<void(error_code)> done);

  std::shared_ptr<detail::core> core_;
};

}  // namespace latchkey
