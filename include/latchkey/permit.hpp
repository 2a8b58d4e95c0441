#pragma once

#include <latchkey/boost_guard.hpp>
#include <latchkey/lease.hpp>

#include <string>
#include <utility>

namespace latchkey {

/// Move-only proof of one permit of a `permit_semaphore`; what a `lease` is for a lock.
///
/// A permit is empty (not granted, released, or moved from), or it stands for one on the server. Its destructor
/// releases it in the background and never throws. A permit without a lease lasts until it is released.
///
/// \par Threads
/// As `lease`.
class LATCHKEY_EXPORT permit {
 public:
  /// An empty permit.
  permit() noexcept = default;

  /// Granted and not yet released, even if lost meanwhile.
  explicit operator bool() const noexcept { return static_cast<bool>(lease_); }
  /// 32 hexadecimal digits, as `permit_semaphore` and Redisson name it; empty for an empty permit.
  std::string id() const { return lease_ ? id_ : std::string(); }
  /// Not released, not lost, deadline ahead. Local, no I/O: what to ask before a side effect.
  bool held() const noexcept { return lease_.held(); }
  /// How long it may be trusted, from now, as far as this client knows: other processes may set its lease anew
  /// (`permit_semaphore::update_lease_time`), and this one does not hear of it. A very long time for a permit without a
  /// lease.
  milliseconds remaining() const noexcept { return lease_.remaining(); }
  /// Asked to stop when the permit is lost, never for a release.
  std::stop_token lost() const noexcept { return lease_.lost(); }
  /// Calls `f()` or `f(error_code)` once when the permit is lost; see `lease::on_lost`.
  template <class F>
  requires std::invocable < std::decay_t<F>
  & > || std::invocable<std::decay_t<F>&, error_code> void on_lost(F&& f) { lease_.on_lost(std::forward<F>(f)); }

  /// From now a lease of this length, if still held; see `lease::extend`. False: it was lost.
  [[nodiscard]] bool extend(timespan length) { return lease_.extend(length); }
  /// As `extend`. Completes with `void(error_code, bool)`.
  template <asio::completion_token_for<void(error_code, bool)> Token = asio::deferred_t>
  auto async_extend(timespan length, Token&& token = asio::deferred_t{}) {
    return lease_.async_extend(length, std::forward<Token>(token));
  }

  /// Gives the permit back and says what was found; see `lease::release`. Where the server refuses that for good (a
  /// right is missing), a permit without a lease stays taken, and an event says so (`event_type::permit_lost`): release
  /// the id that `id()` had, by `permit_semaphore::release`.
  release_result release() { return lease_.release(); }
  /// As `release`. Completes with `void(error_code, release_result)`. Ignores cancellation.
  template <asio::completion_token_for<void(error_code, release_result)> Token = asio::deferred_t>
  auto async_release(Token&& token = asio::deferred_t{}) {
    return lease_.async_release(std::forward<Token>(token));
  }

 private:
  friend class permit_semaphore;
  permit(lease held, std::string id) noexcept : lease_(std::move(held)), id_(std::move(id)) {}

  lease lease_;
  std::string id_;
};

}  // namespace latchkey
