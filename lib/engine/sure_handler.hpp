#pragma once

#include <engine/core.hpp>

#include <boost/asio/bind_executor.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/strand.hpp>

#include <memory>
#include <new>
#include <utility>

namespace latchkey::detail {

// A handler without which the client would wait for ever: what it lets escape, and its destruction without a call, is
// told to the client, which then ends. Asio drops a handler that it has no memory to pass on.
template <class F>
class sure_handler {
 public:
  sure_handler(std::weak_ptr<core> whose, F what) : core_(std::move(whose)), what_(std::move(what)) {}
  sure_handler(sure_handler&& other) noexcept : core_(std::move(other.core_)), what_(std::move(other.what_)) {
    called_ = std::exchange(other.called_, true);
  }
  sure_handler& operator=(sure_handler&&) = delete;
  ~sure_handler() {
    if (!called_) lost();
  }

  template <class... Arguments>
  void operator()(Arguments&&... arguments) {
    called_ = true;
    try {
      what_(std::forward<Arguments>(arguments)...);
    } catch (std::bad_alloc const&) {
      if (auto const self = core_.lock()) self->handler_failed();
    }
  }

 private:
  void lost() noexcept {
    if (auto const self = core_.lock()) self->handler_lost();
  }

  std::weak_ptr<core> core_;
  F what_;
  bool called_ = false;
};

template <class F>
sure_handler<F> surely(std::weak_ptr<core> whose, F what) {
  return {std::move(whose), std::move(what)};
}

// Goes to the strand by itself. Asio would not notice that a strand had no memory to begin: that keeps what it was
// given, and stands still for ever.
template <class F>
auto surely_on(asio::strand<asio::any_io_executor> const& strand, std::weak_ptr<core> const& whose, F what) {
  auto go = [strand, whose, sure = surely(whose, std::move(what))](auto const&... results) mutable {
    try {
      asio::dispatch(strand, [sure = std::move(sure), ... with = results]() mutable { sure(with...); });
    } catch (std::bad_alloc const&) {
      if (auto const self = whose.lock()) self->strand_failed();
    }
  };
  return asio::bind_executor(strand.get_inner_executor(), std::move(go));
}

}  // namespace latchkey::detail
