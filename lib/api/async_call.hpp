#pragma once

#include <engine/call.hpp>
#include <engine/lock_key.hpp>
#include <engine/requests.hpp>
#include <latchkey/detail/initiate.hpp>

#include <boost/asio/any_completion_executor.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/prefer.hpp>

#include <memory>
#include <tuple>
#include <utility>

namespace latchkey::detail {

// A call with a completion handler. Keeps itself alive until the handler has been called or destroyed.
class async_call : public call, public std::enable_shared_from_this<async_call> {
 public:
  // Starts it, or lets it fail with what is wrong. Not to be touched afterwards.
  void begin(refusal const& wrong);

  // Never calls the handler itself: it may run on any thread, in the initiating call as well.
  void complete() noexcept override;
  bool completes_on(asio::any_io_executor const& here) const noexcept override {
    return on_client_executor_ && key_.engine->threads().handlers_beside_io() &&
           here == key_.engine->threads().executor();
  }
  void complete_here() override;

 protected:
  async_call(lock_key const& key, asio::cancellation_slot slot);
  virtual ~async_call() = default;

  // On the handler's executor.
  virtual void deliver() = 0;
  void run_on(asio::any_completion_executor const& executor);
  asio::any_io_executor const& client_executor() const { return client_executor_; }
  void deliver_marked();
  // Cancellation no longer reaches the call; just before the handler is called.
  void disconnect();

 private:
  // Cancellation reaches the call from now on.
  void connect();

  lock_key const& key_;  // kept by whoever derives
  asio::cancellation_slot slot_;
  bool connected_ = false;
  std::shared_ptr<async_call> self_;  // while it is under way
  // Tracked: both run until the handler was called.
  asio::any_io_executor client_executor_;
  asio::any_completion_executor handler_executor_;
  bool on_client_executor_ = false;
};

// `Finish` makes the handler's arguments, a tuple, from the operation; its member `abandon`, if there is one, is
// called when the handler is destroyed without a call.
template <class Finish, class... Values>
class typed_async_call final : public async_call {
 public:
  typed_async_call(lock_key const& key, std::shared_ptr<void const> kept, handler<void(error_code, Values...)> done,
                   Finish finish)
      : async_call(key, asio::get_associated_cancellation_slot(done)),
        kept_(std::move(kept)),
        done_(std::move(done)),
        finish_(std::move(finish)) {
    run_on(asio::get_associated_executor(done_, client_executor()));
  }

  ~typed_async_call() override {
    if constexpr (requires { finish_.abandon(*this); })
      if (!delivered_) finish_.abandon(*this);
  }

 private:
  void deliver() override {
    delivered_ = true;
    auto result = finish_(static_cast<operation const&>(*this));
    auto done = std::move(done_);
    disconnect();
    std::apply(std::move(done), std::move(result));
  }

  std::shared_ptr<void const> kept_;  // what the name and the link lie in
  handler<void(error_code, Values...)> done_;
  Finish finish_;
  bool delivered_ = false;
};

template <class Finish, class... Values>
std::shared_ptr<async_call> make_async_call(lock_key const& key, std::shared_ptr<void const> kept,
                                            handler<void(error_code, Values...)> done, Finish finish) {
  return std::make_shared<typed_async_call<Finish, Values...>>(key, std::move(kept), std::move(done),
                                                               std::move(finish));
}

// Calls a handler with these values, but never on this stack.
template <class... Values>
void complete_later(asio::any_io_executor const& fallback, handler<void(error_code, Values...)> done,
                    error_code const& failed, Values... values) {
  auto const where = asio::get_associated_executor(done, fallback);
  asio::post(fallback, asio::bind_executor(where, [h = std::move(done), failed, ... v = std::move(values)]() mutable {
               std::move(h)(failed, std::move(v)...);
             }));
}

}  // namespace latchkey::detail
