#pragma once

#include <latchkey/acquire_options.hpp>
#include <latchkey/boost_guard.hpp>
#include <latchkey/distributed_lock.hpp>
#include <latchkey/error.hpp>
#include <latchkey/lease.hpp>

#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <concepts>
#include <exception>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

namespace latchkey::detail {

template <class T>
struct awaited;
template <class T>
struct awaited<asio::awaitable<T>> {
  using type = T;
  using signature = void(std::exception_ptr, T);
};
template <>
struct awaited<asio::awaitable<void>> {
  using type = void;
  using signature = void(std::exception_ptr);
};

template <class Body>
using body_awaited = awaited<std::invoke_result_t<std::decay_t<Body>&, lease&>>;
template <class Body>
concept lock_body = requires {
  typename body_awaited<Body>::type;
};
template <class Body>
concept no_lock_body = !lock_body<Body> && !std::convertible_to<Body, acquire_options>;
template <class Body>
using body_signature = typename body_awaited<Body>::signature;
template <class Body>
using body_token =
    std::conditional_t<std::is_void_v<typename body_awaited<Body>::type>, asio::deferred_t, asio::use_awaitable_t<>>;

// Brings cancellation to the coroutine, from the caller and from the loss of the hold, one at a time.
struct body_relay : std::enable_shared_from_this<body_relay> {
  using strand_type = asio::strand<asio::any_io_executor>;

  explicit body_relay(asio::any_io_executor const& executor) : strand(executor) {}

  // Any thread. With a reason if the hold was lost.
  void cancel(error_code why = {}) {
    asio::post(strand, [self = shared_from_this(), why] {
      if (!self->lost) self->lost = why;
      if (!self->over) self->signal.emit(asio::cancellation_type::terminal);
    });
  }

  strand_type strand;  // guards what follows
  asio::cancellation_signal signal;
  error_code lost;
  bool over = false;  // the body has ended: nothing is left to be cancelled
};

// The result of a body, or nothing.
template <class T>
struct body_result {
  std::optional<T> value;
  template <class Body>
  asio::awaitable<void> run(Body& body, lease& held) {
    value.emplace(co_await body(held));
  }
  T take() { return std::move(*value); }
};
template <>
struct body_result<void> {
  template <class Body>
  asio::awaitable<void> run(Body& body, lease& held) {
    co_await body(held);
  }
  void take() {}
};

[[noreturn]] LATCHKEY_EXPORT void rethrow_as_lock_error(std::exception_ptr const& problem);

template <class T, class Body>
asio::awaitable<T> locked_body(distributed_lock lock, acquire_options options, Body body,
                               std::shared_ptr<body_relay> relay) {
  lease held;
  std::exception_ptr problem;
  try {
    held = co_await lock.async_acquire(options, asio::use_awaitable);
  } catch (...) {
    problem = std::current_exception();
  }
  if (problem) rethrow_as_lock_error(problem);
  if (!held) throw lock_error(errc::busy);

  body_result<T> result;
  held.on_lost([relay](error_code why) { relay->cancel(why); });
  try {
    co_await result.run(body, held);
  } catch (...) {
    problem = std::current_exception();
  }
  relay->over = true;
  // No cancellation reaches the release.
  co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
  release_result ended = release_result::unknown;
  try {
    // A body that has ended its hold was told what was found: an empty lease is no loss.
    if (held) ended = co_await held.async_release(asio::use_awaitable);
  } catch (...) {
    // Said by an event; the lease ends the hold.
  }
  if (relay->lost) throw lock_error(relay->lost);
  if (!problem && ended == release_result::expired) throw lock_error(errc::lease_lost);
  if (problem) std::rethrow_exception(problem);
  co_return result.take();
}

template <class Body>
class start_locked_body {
 public:
  using executor_type = asio::any_io_executor;

  explicit start_locked_body(executor_type executor) : executor_(std::move(executor)) {}

  executor_type get_executor() const noexcept { return executor_; }

  template <class Handler>
  void operator()(Handler&& given, distributed_lock lock, acquire_options options, Body body) const {
    auto const where = asio::get_associated_executor(given, executor_);
    auto relay = std::make_shared<body_relay>(io_executor(where));
    auto slot = asio::get_associated_cancellation_slot(given);
    if (slot.is_connected())
      slot.assign([weak = std::weak_ptr(relay)](asio::cancellation_type) {
        if (auto self = weak.lock()) self->cancel();
      });
    auto finish = [slot, relay, done = std::forward<Handler>(given)](auto&&... result) mutable {
      if (slot.is_connected()) slot.clear();
      std::move(done)(std::forward<decltype(result)>(result)...);
    };
    using value = typename body_awaited<Body>::type;
    asio::co_spawn(relay->strand, locked_body<value>(std::move(lock), options, std::move(body), relay),
                   asio::bind_cancellation_slot(relay->signal.slot(), asio::bind_executor(where, std::move(finish))));
  }

 private:
  // The executor of an erased handler can complete, but not post: the client's does instead.
  template <class Executor>
  asio::any_io_executor io_executor(Executor const& where) const {
    if constexpr (std::is_convertible_v<Executor const&, asio::any_io_executor>)
      return where;
    else
      return executor_;
  }

  executor_type executor_;
};

}  // namespace latchkey::detail
