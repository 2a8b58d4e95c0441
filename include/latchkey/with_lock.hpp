#pragma once

#include <latchkey/acquire_options.hpp>
#include <latchkey/boost_guard.hpp>
#include <latchkey/detail/initiate.hpp>
#include <latchkey/detail/locked_body.hpp>
#include <latchkey/distributed_lock.hpp>

#include <concepts>
#include <type_traits>
#include <utility>

namespace latchkey {

/// Runs a coroutine under a lock: acquires, awaits `body(lease&)`, releases on every way out.
///
/// `body` returns an `asio::awaitable<T>`. It runs on a strand of the token's executor and is always awaited. When
/// the hold is lost the body is cancelled (terminal), as if the caller had asked for it, and the result is
/// `errc::lease_lost` whatever the body said, or `errc::closed` if the client closed; else its own result or exception.
/// A body may end its hold early (`lease::release`, `detach`, or moving it away): what that found is told to it alone.
/// Still busy when `acquire_options::wait` ended: `errc::busy`, the body did not run. Cancelling the operation cancels
/// the acquire or the body; the release is awaited in any case.
///
/// Completes with `void(std::exception_ptr)`, or `void(std::exception_ptr, T)` for a body that returns a value; the
/// default token is then `asio::use_awaitable`, since Boost 1.81 cannot `co_await` a deferred value with an exception.
/// Errors of the lock come as `lock_error`.
template <detail::lock_body Body,
          asio::completion_token_for<detail::body_signature<Body>> Token = detail::body_token<Body>>
auto with_lock(distributed_lock lock, acquire_options options, Body body, Token&& token = detail::body_token<Body>{}) {
  return asio::async_initiate<Token, detail::body_signature<Body>>(detail::start_locked_body<Body>(lock.get_executor()),
                                                                   token, std::move(lock), options, std::move(body));
}

/// The same, waiting for ever, with a new owner and the watchdog.
template <detail::lock_body Body,
          asio::completion_token_for<detail::body_signature<Body>> Token = detail::body_token<Body>>
auto with_lock(distributed_lock lock, Body body, Token&& token = detail::body_token<Body>{}) {
  return with_lock(std::move(lock), acquire_options{}, std::move(body), std::forward<Token>(token));
}

// For the compiler's message alone: a body that is none.
template <detail::no_lock_body Body, class... Token>
void with_lock(distributed_lock, acquire_options, Body, Token&&...) {
  static_assert(detail::lock_body<Body>, "the body of with_lock takes a lease& and returns a boost::asio::awaitable");
}
template <detail::no_lock_body Body, class... Token>
void with_lock(distributed_lock, Body, Token&&...) {
  static_assert(detail::lock_body<Body>, "the body of with_lock takes a lease& and returns a boost::asio::awaitable");
}

}  // namespace latchkey
