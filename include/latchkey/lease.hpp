#pragma once

#include <latchkey/acquire_options.hpp>
#include <latchkey/boost_guard.hpp>
#include <latchkey/detail/initiate.hpp>
#include <latchkey/error.hpp>
#include <latchkey/fwd.hpp>

#include <chrono>
#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <type_traits>

namespace latchkey {

namespace detail {

// A move-only callable void(error_code): std::move_only_function is C++23.
class lost_callback {
 public:
  template <class F>
  explicit lost_callback(F&& f) : f_(new holder<std::decay_t<F>>(std::forward<F>(f))) {}
  void operator()(error_code const& why) { f_->call(why); }

 private:
  struct base {
    virtual ~base() = default;
    virtual void call(error_code const&) = 0;
  };
  template <class F>
  struct holder final : base {
    template <class G>
    explicit holder(G&& g) : f(std::forward<G>(g)) {}
    void call([[maybe_unused]] error_code const& why) override {
      if constexpr (std::invocable<F&, error_code>)
        f(why);
      else
        f();
    }
    F f;
  };
  std::unique_ptr<base> f_;
};

}  // namespace detail

/// Move-only proof of one hold on a lock.
///
/// A lease is empty (not granted, released, or moved from), or it stands for a hold. The hold ends by
/// release, or it is lost: its time ran out without a renewal, or the server no longer shows it. What may
/// be done under the lock is asked with `held()`, before every side effect.
///
/// \par Threads
/// Const members may run beside each other and beside `release()`. Everything else: one thread at a time.
class LATCHKEY_EXPORT lease {
 public:
  /// An empty lease.
  lease() noexcept;
  /// Takes over what `other` holds; that one is empty then.
  lease(lease&& other) noexcept;
  /// Releases in the background what it held, as the destructor does, then takes over `other`.
  lease& operator=(lease&& other) noexcept;
  /// Releases in the background: waits for no answer, and does not throw. The release goes before every later attempt
  /// on that lock through the same client. After the client was closed it does nothing. A callback of `on_lost` that
  /// runs meanwhile on another thread is awaited: it is not to wait for what this thread holds, a mutex for example.
  ~lease();

  /// Granted and not yet released, even if lost since.
  explicit operator bool() const noexcept;

  /// Not released, not lost, and the deadline is ahead. Local: no I/O, a few nanoseconds.
  bool held() const noexcept;

  /// Who holds it. For an empty lease an owner that equals no real one.
  latchkey::owner owner() const noexcept;

  /// The name of the lock, as given to the client; empty for an empty lease. Valid while this lease shows the hold.
  std::string const& name() const noexcept;

  /// Until when the hold may be trusted, on the steady clock, computed at this call.
  ///
  /// It is counted from when the request was sent that the server answered last, on a clock that also
  /// runs while the machine sleeps. Renewals move it on. Empty, released or lost: a time that has passed.
  std::chrono::steady_clock::time_point valid_until() const noexcept;

  /// The time until `valid_until()`, zero if none is left.
  milliseconds remaining() const noexcept;

  /// Says that the work under the lock goes on; see `acquire_options::progress_within`. Local: a few nanoseconds (of a
  /// lock of several members: a mutex). Without that option, and for an empty lease, nothing happens.
  void progress() noexcept;

  /// A number that is higher for every later holder; only fenced locks have one. A server that loses the last grant in
  /// a failover may give its number once more: let what is protected refuse an equal one from another holder, too.
  std::optional<std::uint64_t> fencing_token() const noexcept;

  /// Asked to stop when the hold is lost, never for a release: on the client's executor, a moment after `held()` and
  /// `extend` say so. An empty lease gives a token that never stops.
  std::stop_token lost() const noexcept;

  /// Calls `f()` or `f(error_code)` once when the hold is lost; a later callback replaces an earlier one.
  ///
  /// Runs on the client's executor, outside all locks (with a thread of its own: on that for callbacks); posted at once
  /// if the hold is lost already. Never for a release; `close()` of the client is a loss, `errc::closed`, after which
  /// the hold is renewed on until it is released, or the client's time is over. It moves with the lease. After
  /// `release()` or the destructor returned on another thread it neither runs nor will run.
  template <class F>
  requires std::invocable < std::decay_t<F>
  & > || std::invocable<std::decay_t<F>&, error_code> void on_lost(F&& f) {
    set_on_lost(detail::lost_callback(std::forward<F>(f)));
  }

  /// From now a fixed lease of this length, if still held. False: it was lost; a server that does not answer is waited
  /// for until then at most, if the client's executor runs. What it does there later is given back, unless the hold was
  /// adopted or has a lock delay: then it stands for `length`.
  ///
  /// Never shortens what other holds of the same owner need. A hold that the watchdog renewed is renewed no
  /// longer. On the server: PEXPIRE, if the field is still there.
  /// \throws lock_error `bad_argument`, `closed`, `timeout`, `connection_lost`, `would_deadlock`, `server_error`;
  /// the hold then lasts at most as long as before, and at most `length`.
  [[nodiscard]] bool extend(timespan length);

  /// As `extend`. Completes with `void(error_code, bool)`.
  template <asio::completion_token_for<void(error_code, bool)> Token = asio::deferred_t>
  auto async_extend(timespan length, Token&& token = asio::deferred_t{}) {
    return detail::initiate_on(executor(), state_, start_extend, token, released_, length);
  }

  /// Lets the hold go on without this lease: ends its renewal, releases nothing, and gives a token (`lk1.` and letters,
  /// digits, `-` and `_`) with which `client::adopt` of any process takes it up again. The lease is empty afterwards.
  ///
  /// Local: no I/O, on any thread. The hold then lasts as long as the server was last told; `extend` it before to be
  /// sure of a time. Told by an event `left_to_lease`, counted as released. Waiters of this client wait on as behind a
  /// holder of another one. The token names the lock and the owner, and is no secret that the server does not show.
  /// Whoever uses that owner for the same lock again, while the hold lasts, takes it up, too: leave owners to
  /// `acquire`.
  ///
  /// Empty: the lease was, or the hold is over.
  /// \throws lock_error `bad_argument`: a lock of several members; the owner holds the lock more than once, or has
  ///         another call for it under way; it began as a local turn (`config::local_turns`), under an owner that the
  ///         server does not show. `closed` in the child of a fork. The lease then stays as it was.
  std::string detach();

  /// Ends the hold and says what was found. The lease is empty afterwards. Empty before: `expired`.
  /// \throws lock_error `closed`, `would_deadlock` (the release then goes on in the background); `wrong_type` and
  ///         `server_error`, with the server's words, if it was refused for good: then the lease ends the hold.
  release_result release();

  /// As `release`. Completes with `void(error_code, release_result)`. Ignores cancellation.
  template <asio::completion_token_for<void(error_code, release_result)> Token = asio::deferred_t>
  auto async_release(Token&& token = asio::deferred_t{}) {
    auto ex = executor();
    // A deferred operation that is never started releases in the background, as this lease would have.
    return detail::initiate<void(error_code, release_result)>(
        std::move(ex), token,
        [held = std::make_shared<lease>(give_up())](detail::handler<void(error_code, release_result)> done) {
          start_release(std::move(held->state_), held->released_, std::move(done));
        });
  }

 private:
  friend class detail::core;
  friend class detail::lease_state;
  explicit lease(std::shared_ptr<detail::lease_state> state) noexcept;

  asio::any_io_executor executor() const;
  lease give_up() noexcept;
  void set_on_lost(detail::lost_callback callback);
  // `from`: what the lease showed before it was given to an async_release.
  static void start_extend(std::shared_ptr<detail::lease_state> const& state,
                           detail::handler<void(error_code, bool)> done,
                           std::shared_ptr<detail::lease_state> const& from, milliseconds length);
  static void start_release(std::shared_ptr<detail::lease_state> state,
                            std::shared_ptr<detail::lease_state> const& from,
                            detail::handler<void(error_code, release_result)> done);

  std::shared_ptr<detail::lease_state> state_;
  std::shared_ptr<detail::lease_state> released_;  // by async_release: its client runs the handlers of later calls
};

}  // namespace latchkey
